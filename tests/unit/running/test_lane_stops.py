"""A lane that met another history: it says so first, and that it stops is kept where every start finds it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zerotail import errors
from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, Lsn, PartitionNumber, SiteName
from zerotail.ports import Done, End, Refused, Unreachable
from zerotail.running import emitter
from zerotail.running.emitter import Emitter
from zerotail.wiring import Backoff, Stopped

pytestmark = pytest.mark.fast

LANE = Lane(ChannelName("bank"), PartitionNumber(0))


class Sending:
    """A lane that meets another history twice, and is told to end; a database that answers as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: list[Any]) -> None:
        self.heard: list[str] = []
        self.answers = answers
        self.starts = 0
        monkeypatch.setattr(emitter, "Session", lambda *_: self)
        monkeypatch.setattr(emitter, "adapter_settings", lambda *_: SimpleNamespace(dsn=""))
        monkeypatch.setattr(emitter, "_LOOK_SECONDS", 0.0)
        nobody: Any = None
        self.emitter = Emitter(nobody, SiteName("east"), self.tell, self.say)

    def tell(self, line: str) -> None:
        self.heard.append(line)

    def say(self, *words: Any, **_: Any) -> None:
        self.heard.append(" ".join(map(str, words)))

    def write(self, _work: Any) -> Any:
        answer = self.answers.pop(0)
        self.heard.append(f"write: {type(answer).__name__}")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Nothing is open."""

    def keep_sending(self, _backoff: Backoff) -> End:
        self.starts += 1
        if self.starts == 3:
            raise Stopped
        raise errors.Broken("the receiver has message 5 with other bytes", code="ZT603")

    def run(self) -> list[str]:
        self.emitter._send_on(LANE, self.keep_sending)
        return self.heard


def test_it_is_said_before_it_is_stored_and_a_database_that_is_away_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = Sending(monkeypatch, [Unreachable(), Done(Lsn(1)), Done(Lsn(1))]).run()
    assert "ZT603" in heard[0]
    assert [line for line in heard if line.startswith("write")] == ["write: Unreachable", "write: Done", "write: Done"]


def test_a_database_that_declines_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(monkeypatch, [Refused("read-only"), Refused("read-only")])
    sending.run()
    assert sending.starts == 3


def test_a_right_that_is_missing_is_told_and_does_not_end_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = errors.Refused("permission denied for table lane_stop", code="ZT303")
    sending = Sending(monkeypatch, [missing, missing])
    heard = sending.run()
    assert sending.starts == 3
    assert any("cannot be stored: ZT303 permission denied" in line for line in heard)
