"""Draining: in order, each entry once, and let go only when somebody else has it for good."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.command import call
from zerotail import Spool
from zerotail.errors import Refused, Unfinished
from zerotail.spool import drain
from zerotail.spool.aside import read_aside
from zerotail.spool.drain import Place, Step, drain_step
from zerotail.spool.finish import drain_to_end
from zerotail.spool.folder import SET_ASIDE
from zerotail.spool.frame import Entry
from zerotail.spool.sites import Kept, NotYet, Sites, Taken
from zerotail.spool.status import observe_spool

pytestmark = pytest.mark.fast


class Ledger:
    """Instructions in memory: stores by identifier, as the database does."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.refuses: list[str] = []
        """Reasons for which it stores and does not say so."""
        self.exposed = False
        self.took: list[int] = []
        """The first sequence of what was brought, each time."""

    def take(self, producer: str, entries: Sequence[Entry]) -> Taken | NotYet:
        assert producer == "cards"
        before = len(self.rows)
        self.took.append(entries[0].sequence)
        for entry in entries:
            self.rows.setdefault(entry.id, entry.value)
        if self.refuses:
            return NotYet(self.refuses.pop(0))
        different = tuple(entry for entry in entries if self.rows[entry.id] != entry.value)
        return Taken(len(self.rows) - before, different, exposed=self.exposed)

    def close(self) -> None:
        """Nothing to give back."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spool with five entries."""
    with Spool(tmp_path / "queue", "cards") as spool:
        for number in range(1, 6):
            spool.put(f"c-{number}", b"%d" % number)
    return tmp_path / "queue"


def test_everything_is_taken_in_order_and_let_go(folder: Path) -> None:
    ledger = Ledger()
    with Spool(folder) as spool:
        told: list[int] = []
        report = drain_to_end(spool, ledger, 1.0, told.append)
        assert (report.entries, report.known, report.set_aside, told) == (5, 0, 0, [5])
        assert (spool.waiting, spool.drained) == (0, 5)
        assert drain_step(spool, ledger) is None
    assert list(ledger.rows) == [f"c-{number}" for number in range(1, 6)]
    Spool(folder).close()
    assert observe_spool(folder).used_bytes == 0


def test_entries_stay_as_long_as_nobody_has_confirmed_them(folder: Path) -> None:
    ledger = Ledger()
    ledger.refuses = ["the gate is closed"] * 2
    with Spool(folder) as spool:
        assert drain_step(spool, ledger) == NotYet("the gate is closed")
        assert spool.waiting == 5
        assert drain_to_end(spool, ledger, 30.0).known == 5
        assert len(ledger.rows) == 5


def test_what_a_site_alone_has_taken_stays_until_both_have_it_and_more_is_taken_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "_GATE_SECONDS", 0.0)
    ledger, place = Ledger(), Place()
    ledger.exposed = True
    with Spool(folder) as spool:
        assert drain_step(spool, ledger, place) == Step(5, 5, 0)
        assert (spool.waiting, len(ledger.rows)) == (5, 5)
        spool.put("c-6", b"6")
        assert drain_step(spool, ledger, place) == Step(1, 1, 0)
        kept = drain_step(spool, ledger, place)
        assert isinstance(kept, Kept)
        assert "has taken 6 entries, and they are kept here until both sites have them" in kept.reason
        assert (spool.waiting, spool.drained) == (6, 0)

        ledger.exposed = False
        spool.put("c-7", b"7")
        assert drain_step(spool, ledger, place) == Step(1, 1, 0), "nothing in front of it was let go"
        assert spool.drained == 0
        assert drain_step(spool, ledger, place) == Step(0, 0, 0), "all were counted before"
        assert (spool.waiting, spool.drained) == (0, 7)
        assert drain_step(spool, ledger, place) is None
    assert ledger.took == [1, 6, 1, 7, 1]


def test_a_gate_is_found_again_when_nothing_comes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "_GATE_SECONDS", 0.0)
    ledger, place = Ledger(), Place()
    ledger.exposed = True
    with Spool(folder) as spool:
        drain_step(spool, ledger, place)
        ledger.exposed = False
        assert drain_step(spool, ledger, place) == Step(0, 0, 0)
        assert spool.waiting == 0


def test_an_operator_who_drains_into_a_site_alone_hears_that_the_copies_stay(folder: Path) -> None:
    ledger = Ledger()
    ledger.exposed = True
    with Spool(folder) as spool, pytest.raises(Unfinished, match="kept here until both sites have them") as error:
        drain_to_end(spool, ledger, 0.1)
    assert "5 were drained" in error.value.why
    assert observe_spool(folder).waiting == 5


def test_the_operator_is_told_why_it_does_not_end(folder: Path) -> None:
    ledger = Ledger()
    ledger.refuses = ["the gate is closed"] * 1000
    with Spool(folder) as spool, pytest.raises(Unfinished, match=r"5 entries .* the gate is closed") as error:
        drain_to_end(spool, ledger, 0.1)
    assert error.value.code == "ZT911"
    assert observe_spool(folder).waiting == 5


@pytest.mark.parametrize("step", ["keep_aside", "note_drained", "unlink"])
def test_a_drain_that_ends_between_two_steps_is_done_again_and_nothing_is_stored_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class Killed(Exception):
        pass

    def kill(*_: object, **__: object) -> None:
        raise Killed

    ledger = Ledger()
    with monkeypatch.context() as patch, Spool(folder) as spool:
        if step == "keep_aside":
            patch.setattr(drain, step, kill)
        elif step == "note_drained":
            patch.setattr("zerotail.spool.folder.note_drained", kill)
        else:
            patch.setattr(Path, "unlink", kill)
        with pytest.raises(Killed):
            drain_step(spool, ledger)
    before = dict(ledger.rows)
    with Spool(folder) as spool:
        drain_to_end(spool, ledger, 1.0)
        assert (spool.waiting, ledger.rows) == (0, before)
    assert observe_spool(folder).set_aside == ()


def test_an_identifier_that_belongs_to_other_bytes_is_set_aside_durably_and_reported(folder: Path) -> None:
    ledger = Ledger()
    ledger.rows = {"c-2": b"another", "c-4": b"4"}
    with Spool(folder) as spool:
        assert drain_step(spool, ledger) == Step(5, 3, 1)
        spool.put("c-1", b"not one")
        assert drain_step(spool, ledger) == Step(1, 0, 1)
    assert [(entry.sequence, entry.id, entry.value) for entry in read_aside(folder)] == [
        (2, "c-2", b"2"),
        (6, "c-1", b"not one"),
    ]
    said = call("spool", "status", str(folder))
    assert said.code == 1
    assert "SET ASIDE: entry 6: c-1 (partition 0) cannot become an instruction" in said.out


def test_what_is_brought_to_a_site_alone_again_and_again_is_set_aside_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "_GATE_SECONDS", 0.0)
    ledger, place = Ledger(), Place()
    ledger.rows["c-2"], ledger.exposed = b"other", True
    with Spool(folder) as spool:
        drain_step(spool, ledger, place)
        size = (folder / SET_ASIDE).stat().st_size
        for _ in range(3):
            drain_step(spool, ledger, place)
    assert ledger.took == [1, 1, 1, 1]
    assert (folder / SET_ASIDE).stat().st_size == size
    assert [entry.sequence for entry in read_aside(folder)] == [2]


def test_a_half_written_end_of_what_was_set_aside_is_written_again(folder: Path) -> None:
    ledger = Ledger()
    ledger.rows = {"c-2": b"another"}
    with Spool(folder) as spool:
        drain_step(spool, ledger)
        with (folder / SET_ASIDE).open("ab") as file:
            file.write(b"ZTS1 half")
        spool.put("c-2", b"a third")
        drain_step(spool, ledger)
    assert [entry.sequence for entry in read_aside(folder)] == [2, 6]


def test_the_site_that_took_entries_last_is_asked_first(tmp_path: Path) -> None:
    asked = []

    class Named:
        def __init__(self, name: str, answer: Taken | NotYet) -> None:
            self.name, self.answer = name, answer

        def take(self, producer: str, entries: Sequence[Entry]) -> Taken | NotYet:
            asked.append(self.name)
            return self.answer

        def close(self) -> None:
            asked.append(f"{self.name} closed")

    east, west = Named("east", NotYet("east: this site is not live")), Named("west", Taken(0, ()))
    sites = Sites([east, west])
    assert sites.take("cards", []) == Taken(0, ())
    assert sites.take("cards", []) == Taken(0, ())
    assert asked == ["east", "west", "west"]
    sites.close()
    assert asked[3:] == ["west closed", "east closed"]
    west.answer = NotYet("the database of west does not answer")
    assert sites.take("cards", []) == NotYet("the database of west does not answer; east: this site is not live")


def test_status_answers_in_both_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, now = tmp_path / "queue", time.time_ns()
    with Spool(folder, "cards") as spool:
        for number in range(1, 6):
            monkeypatch.setattr(time, "time_ns", lambda number=number: now - (6 - number) * 1_000_000_000_000)
            spool.put(f"c-{number}", b"%d" % number)
    monkeypatch.undo()
    answer = call("spool", "status", str(folder), "--json").answer("spool-status")
    assert answer["ok"]
    seen = answer["spool"]
    assert (seen["producer"], seen["waiting"], seen["drained"], seen["last_sequence"]) == ("cards", 5, 0, 5)
    assert seen["used_by"] is None
    assert 5_000 <= seen["oldest_seconds"] < 6_000
    said = call("spool", "status", str(folder))
    assert said.code == 0
    assert "5 entries wait" in said.out
    with Spool(folder) as spool:
        drain_to_end(spool, Ledger(), 1.0)
        said = call("spool", "status", str(folder))
        assert "nothing waits" in said.out
        assert f"used by process {os.getpid()}" in said.out


def test_a_wrong_call_says_what_to_do(folder: Path, tmp_path: Path) -> None:
    nowhere = call("spool", "status", str(tmp_path), "--json")
    assert (nowhere.code, nowhere.answer("error")["code"]) == (3, "ZT902")
    unset = call("spool", "drain", str(folder), "--json", folder=str(tmp_path))
    assert (unset.code, unset.answer("error")["code"]) == (2, "ZT111")
    with Spool(folder), pytest.raises(Refused):
        Spool(folder)
