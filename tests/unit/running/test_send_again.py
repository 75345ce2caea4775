"""When the instruction source goes back to the vector, Spark must see a new offset, or it sends nothing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from support.standings import standing
from zerotail.core.epoch import Phase
from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.ports import Standing
from zerotail.postgres.feed import FeedPlace
from zerotail.postgres.way_in import end_drain
from zerotail.spark.instruction_source import InstructionReader

pytestmark = pytest.mark.fast

OWED = 1000
SENT = {"first": 11, "next": 21, "again": 0}


class Database:
    """Has instructions up to the 20th; the stage owes so much to others, and so much to itself."""

    def __init__(self, owed: int, to_itself: int = 0) -> None:
        self.owed = {"booking": owed, "back": to_itself}

    def read(self, work: Any) -> Any:
        return work(self) if "fullest_bytes" in work.__code__.co_names else 20

    def execute(self, _question: bytes, asked: tuple[str, list[str]]) -> Any:
        left_out = asked[1]
        owed = sum(owed for channel, owed in self.owed.items() if channel not in left_out)
        return SimpleNamespace(fetchall=lambda: [(0, owed)])


class Asked(Database):
    """The same; it remembers what it was asked."""

    def __init__(self, owed: int) -> None:
        super().__init__(owed)
        self.questions: list[str] = []

    def read(self, work: Any) -> Any:
        self.questions.append("read")
        return super().read(work)

    def write(self, _work: Any) -> None:
        self.questions.append("write")


def _reader(monkeypatch: pytest.MonkeyPatch, owed: int = 0, to_itself: int = 0) -> InstructionReader:
    options = {
        "dsn": "",
        "producers": "cards",
        "resend_after_seconds": "0",
        "owed": f'{{"settle": [{OWED}, ["back"]]}}',
    }
    reader = InstructionReader(options)
    monkeypatch.setattr(reader, "_database", lambda: Database(owed, to_itself))
    return reader


def _place(vector: int, request: int = 0) -> FeedPlace:
    return FeedPlace(
        ProducerNumber(1),
        PartitionNumber(0),
        StageName("settle"),
        Serial(vector),
        request,
        numbered=False,
        stopped=False,
        last=Serial(20),
        waiting=False,
    )


def test_the_very_batch_that_was_sent_last_can_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader(monkeypatch)
    assert reader._plan(_place(10), SENT) == SENT, "the first look only notes where the vector stands"
    again = reader._plan(_place(10), SENT)
    assert again == {**SENT, "again": 1}
    assert reader.partitions({"1/0": SENT}, {"1/0": again})


def test_a_request_sends_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader(monkeypatch)
    assert reader._plan(_place(10), SENT) == SENT
    assert reader._plan(_place(10, request=1), SENT)["again"] == 1


def test_a_stage_that_owes_too_much_is_sent_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader(monkeypatch, owed=OWED)
    assert [reader._plan(_place(10), SENT) for _ in range(5)] == [SENT] * 5


def test_a_stage_that_owes_too_much_to_itself_is_sent_again_what_it_has_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = _reader(monkeypatch, owed=OWED - 1, to_itself=OWED)
    assert reader._plan(_place(10), SENT) == SENT
    assert reader._plan(_place(10), SENT) == {**SENT, "again": 1}


@pytest.mark.parametrize(("phase", "ended"), [(Phase.DRAINING, True), (Phase.LIVE, False)])
def test_whoever_plans_ends_a_drain_that_nobody_holds(
    monkeypatch: pytest.MonkeyPatch, phase: Phase, ended: bool
) -> None:
    reader, asked = _reader(monkeypatch), list[object]()
    seen: tuple[Standing, list[FeedPlace]] = (standing(phase=phase), [])
    database = SimpleNamespace(read=lambda _work: seen, write=asked.append)
    monkeypatch.setattr(reader, "_database", lambda: database)
    assert reader._look() == (True, [])
    assert asked == ([end_drain] if ended else [])


def test_a_vector_that_has_come_all_the_way_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader(monkeypatch)
    assert [reader._plan(_place(20), SENT) for _ in range(5)] == [SENT] * 5


@pytest.mark.parametrize(("last", "waiting", "asked"), [(20, False, False), (21, False, True), (20, True, True)])
def test_a_look_that_finds_nothing_asks_nothing_more(
    monkeypatch: pytest.MonkeyPatch, last: int, waiting: bool, asked: bool
) -> None:
    reader = _reader(monkeypatch)
    database = Asked(0)
    monkeypatch.setattr(reader, "_database", lambda: database)
    place = replace(_place(20), last=Serial(last), waiting=waiting, numbered=True)
    assert reader._plan(place, SENT) == SENT
    assert database.questions == (["write"] if waiting else []) + (["read"] if asked else [])


def test_a_slow_stage_is_sent_the_same_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader(monkeypatch)
    reader._stands_seconds = 1.0
    clock = [0.0]
    monkeypatch.setattr("zerotail.spark.instruction_source.time.monotonic", lambda: clock[0])
    sent_again = 0
    for tick in range(1000):
        clock[0] = tick * 0.1
        # Every other second the stage takes one record more.
        sent_again += reader._stands(_place(tick // 20), 1000)
    assert sent_again == 1
    reader._stands(_place(999), 1000)
    clock[0] += 0.1
    assert not reader._stands(_place(999), 1001)
    clock[0] += 1.1
    assert reader._stands(_place(999), 1001), "who has taken everything is waited for as short as at first"
