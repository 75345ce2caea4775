"""An epoch that is gated again, and commits that do not wait again: the operator is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.standings import EAST, WEST
from zerotail import ports
from zerotail.config import Configuration
from zerotail.core.epoch import Durability
from zerotail.core.identity import Lsn, epoch_of
from zerotail.errors import Refused, Unavailable
from zerotail.operate import adapters
from zerotail.operate.adapters import BadDayAdapters, NoNotes

pytestmark = pytest.mark.fast

GATED = ports.ChangeEpoch(EAST, epoch_of(2, 0), durability=Durability.GATED)
BY_HAND = "alter system set synchronous_standby_names = 'FIRST 1 (west)'; select pg_reload_conf();"


@dataclass(frozen=True)
class Remarks(NoNotes):
    """Keeps what is remarked."""

    said: list[str] = field(default_factory=list)

    def remark(self, text: str) -> None:
        self.said.append(text)


class Changes:
    """A database that takes every change."""

    def write(self, _work: Any) -> ports.Done:
        return ports.Done(Lsn(9))

    def close(self) -> None:
        pass


def remarks_of(
    configuration: Configuration,
    monkeypatch: pytest.MonkeyPatch,
    *,
    waits: str = "",
    streaming: bool = True,
    set_standby: Callable[..., None] = lambda *_: None,
) -> list[str]:
    """Go back to gated at east, and what was remarked meanwhile."""

    @contextmanager
    def session(*_: Any) -> Iterator[None]:
        yield

    monkeypatch.setattr(adapters, "session_within", session)
    monkeypatch.setattr(adapters, "one_row", lambda *_: (waits,))
    monkeypatch.setattr(adapters, "is_streaming", lambda _connection, name: streaming and name == WEST)
    monkeypatch.setattr(adapters, "set_synchronous_standby", set_standby)
    notes = Remarks()
    own = BadDayAdapters(configuration, EAST, notes)
    monkeypatch.setattr(own, "_sessions", {EAST: Changes(), WEST: Changes()})
    try:
        assert own.carry_out(GATED) == ports.Done(Lsn(9))
    finally:
        own.close()
    return notes.said


def declines(*_: Any) -> None:
    raise Refused("permission denied to set parameter")


def is_silent(*_: Any) -> None:
    raise Unavailable("the database does not answer")


def test_commits_that_wait_again_need_no_remark(configuration: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    said = remarks_of(configuration, monkeypatch, set_standby=lambda _connection, standby: asked.append(standby))
    assert (said, asked) == ([], [WEST])
    assert remarks_of(configuration, monkeypatch, waits="ANY 1 (other)", set_standby=declines) == []


@pytest.mark.parametrize(
    ("streaming", "set_standby", "reason"),
    [
        (True, declines, "permission denied to set parameter"),
        (True, is_silent, "the database does not answer"),
        (False, declines, "no standby of the name west follows"),
    ],
)
def test_commits_that_do_not_wait_again_are_remarked_with_the_reason_and_the_line_to_type(
    configuration: Configuration,
    monkeypatch: pytest.MonkeyPatch,
    streaming: bool,
    set_standby: Callable[..., None],
    reason: str,
) -> None:
    (said,) = remarks_of(configuration, monkeypatch, streaming=streaming, set_standby=set_standby)
    assert said == f"commits of east still wait for no standby, {reason}; the gate holds, by hand: {BY_HAND}"
