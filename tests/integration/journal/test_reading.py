"""The order journal read back from PostgreSQL, with values of instructions and of an upstream stage's outbox."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from support.journal import CARDS, FIRST, MOVES_OF_1, POST, SECOND, SETTLE, Books, superuser
from zerotail.core.identity import PartitionNumber, ProducerNumber, SegmentNumber, Serial, StageName
from zerotail.errors import Broken
from zerotail.failover.follow import records_behind
from zerotail.ports import FindPlace, JournalRead, ReadJournal, Refused
from zerotail.postgres.reading import find_place, read_journal
from zerotail.postgres.transaction import Session

pytestmark = pytest.mark.servers
Day = tuple[str, str, Books]


def read(dsn: str, effect: ReadJournal | FindPlace) -> JournalRead:
    with closing(Session(dsn)) as session:
        answer = session.read(
            lambda c: read_journal(c, effect) if isinstance(effect, ReadJournal) else find_place(c, effect)
        )
    assert isinstance(answer, JournalRead), answer
    return answer


@pytest.mark.parametrize(("stage", "partition"), [(SETTLE, FIRST), (SETTLE, SECOND), (POST, FIRST)])
def test_the_journal_gives_back_every_record_in_the_order_in_which_it_was_taken(
    day: Day, stage: StageName, partition: PartitionNumber
) -> None:
    _, dsn, books = day
    found = read(dsn, ReadJournal(stage, partition, SegmentNumber(0), 100))
    batch = records_behind(found)
    assert [*zip(batch.producers, batch.serials, batch.values, strict=True)] == books.taken[stage, partition]
    assert found.first_position == 0
    assert found.segments[-1].chain == found.head.chain
    for before, after in zip(found.segments, found.segments[1:], strict=False):
        assert after.previous == before.chain


def test_reading_goes_on_behind_a_segment_and_keeps_to_its_limit(day: Day) -> None:
    _, dsn, _ = day
    whole = read(dsn, ReadJournal(SETTLE, FIRST, SegmentNumber(0), 100))
    part = read(dsn, ReadJournal(SETTLE, FIRST, SegmentNumber(2), 2))
    assert [*part.segments] == [*whole.segments[2:4]]
    assert part.first_position == whole.segments[2].first_position
    behind = read(dsn, ReadJournal(SETTLE, FIRST, whole.head.segment, 2))
    assert not behind.segments
    assert behind.first_position == whole.head.next_position


@pytest.mark.parametrize("stage", [SETTLE, POST])
def test_a_place_is_found_behind_any_record(day: Day, stage: StageName) -> None:
    _, dsn, books = day
    taken = books.taken[stage, FIRST]
    for position in (0, 1, 29, 49, 50, 54, len(taken) - 2, len(taken) - 1):
        producer, serial, _ = taken[position]
        found = read(dsn, FindPlace(stage, FIRST, producer, serial, 100))
        assert found.first_position == position + 1
        batch = records_behind(found)
        assert [*zip(batch.producers, batch.serials, batch.values, strict=True)] == taken[position + 1 :]


def test_a_place_without_a_record_is_the_beginning(day: Day) -> None:
    _, dsn, books = day
    found = read(dsn, FindPlace(SETTLE, FIRST, ProducerNumber(0), Serial(0), 100))
    assert len(records_behind(found).values) == len(books.taken[SETTLE, FIRST])


@pytest.mark.parametrize("producer", [CARDS, ProducerNumber(9)])
def test_a_record_that_is_not_in_the_journal_has_nothing_behind_it(day: Day, producer: ProducerNumber) -> None:
    _, dsn, _ = day
    found = read(dsn, FindPlace(SETTLE, FIRST, producer, Serial(10_000), 100))
    assert not found.segments
    assert found.first_position == found.head.next_position


def test_a_stage_that_is_not_here_is_refused(day: Day) -> None:
    effect = ReadJournal(StageName("other"), FIRST, SegmentNumber(0), 1)
    with closing(Session(day[1])) as session:
        answer = session.read(lambda c: read_journal(c, effect))
    assert answer == Refused("stage other has no partition 0 here")


@pytest.mark.parametrize(
    ("spoil", "stage", "message"),
    [
        ("delete from zerotail.instruction where producer = 1 and partition = 0 and serial = 7", SETTLE, "serial 7"),
        (
            f"delete from zerotail.outbox where channel = 'moves' and partition = {MOVES_OF_1 - 3} and segment = 1",
            POST,
            f"serial 1 of producer {MOVES_OF_1}",
        ),
        ("delete from zerotail.segment where stage = 'settle' and partition = 0 and segment = 3", SETTLE, "segment 3"),
        ("delete from zerotail.segment where stage = 'settle' and partition = 0 and segment = 1", SETTLE, "segment 1"),
    ],
)
def test_a_journal_that_lacks_something_is_broken_and_says_what(
    copy: Callable[[], str], spoil: str, stage: StageName, message: str
) -> None:
    dsn = copy()
    with superuser(dsn) as session:
        session.execute(spoil.encode())
    with pytest.raises(Broken, match=message):
        read(dsn, ReadJournal(stage, FIRST, SegmentNumber(0), 100))
