"""A standby that may not stop the receiver of a log that has lost its end goes on trying, and says so."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from threading import Event

import pytest

from support.standings import EAST, WEST, standing
from zerotail.core.gate import GateAnswer
from zerotail.core.identity import Epoch, Lsn, Timeline
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused
from zerotail.kafka.cluster import Cluster
from zerotail.ports import PositionRead
from zerotail.running import upstream
from zerotail.running.upstream import LostEnd, find_lost_end, watch_upstream
from zerotail.wiring import AdapterSettings

pytestmark = pytest.mark.fast

SETTINGS = AdapterSettings(WEST, "host=west", "host=east", Cluster("127.0.0.1:1"))
HELD = Lsn(1000)
BEHIND, GROWN = (PositionRead(standing(), Lsn(ends)) for ends in (900, 5000))
FOUND = LostEnd(BEHIND.standing.epoch, "the other site's log ends at 900, and west holds it up to 1000")


@dataclass
class East:
    """What west's standby, which holds the log up to 1000, sees of the other site."""

    there: PositionRead | None = BEHIND
    denied: int = 0
    tried: int = 0

    def stop(self, _: object) -> None:
        self.tried += 1
        self.there = GROWN
        if self.tried <= self.denied:
            raise Refused("permission denied to set parameter primary_conninfo")


@pytest.fixture
def east(monkeypatch: pytest.MonkeyPatch) -> East:
    seen, here = East(), BEHIND.standing
    own = GateAnswer(True, here.system, Timeline(1), here.epoch, HELD)
    monkeypatch.setattr(upstream, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(upstream, "_own_answer", lambda _: own)
    monkeypatch.setattr(upstream, "_other_site", lambda _: seen.there)
    monkeypatch.setattr(upstream, "session_within", lambda *_: nullcontext())
    monkeypatch.setattr(upstream, "stop_receiving", seen.stop)
    return seen


def test_it_goes_on_trying_when_the_log_has_grown_past_its_place(east: East) -> None:
    east.denied = 3
    turn, told, said = Event(), list[str](), list[tuple[object, ...]]()
    watch_upstream(SETTINGS, turn, told.append, lambda *word, **_: said.append(word))
    wait_until("it is stopped", lambda: len(told) == 2, Deadline.after(10))
    turn.set()
    wait_until("it says that it is over", lambda: said[-1][3] == "working", Deadline.after(10))
    assert east.tried == 4
    assert told[0].startswith(
        f"{FOUND.why}: its log must not be received any more, and that could not be stopped (perm"
    )
    assert told[1] == f"{FOUND.why}: its log is received no more; zerotail takeover run --to west"
    assert {word[:4] for word in said[:-1]} == {("emitter", "upstream", None, "stopped")}


def test_what_was_found_counts_until_the_other_site_is_in_another_epoch(east: East) -> None:
    assert find_lost_end(SETTINGS) == FOUND
    east.there = GROWN
    assert find_lost_end(SETTINGS) is None, "a look alone finds nothing any more"
    assert find_lost_end(SETTINGS, FOUND) == FOUND
    east.there = None
    assert find_lost_end(SETTINGS, FOUND) == FOUND
    east.there = PositionRead(standing(3, EAST), Lsn(5000))
    assert find_lost_end(SETTINGS, FOUND) is None


def test_a_promoted_site_follows_nobody(east: East, monkeypatch: pytest.MonkeyPatch) -> None:
    east.there = GROWN
    monkeypatch.setattr(upstream, "_own_answer", lambda _: GateAnswer(False, 1, Timeline(1), Epoch(256), HELD))
    assert find_lost_end(SETTINGS, FOUND) is None
