"""A record that is no instruction and looks like one ends a batch in front of it, with the offset at which it lies."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from support.standings import standing
from zerotail.core.head import first_head
from zerotail.core.identity import Epoch, PartitionNumber, Position, ProducerNumber, Serial, StageName, TopicName
from zerotail.core.installation import UNMARKED, Installation
from zerotail.core.poison import Decision, Remedy
from zerotail.core.record import HEADER_BYTES, Header, digest_of, encode
from zerotail.flow.stage import Place, Stage, Taken
from zerotail.ports import Done, End, HeadRead, Indefinite, Pause, ReadHead, RecordPoison, Refused, Unreachable
from zerotail.spark.strange import Sifted, has_news, sift, stop_at

pytestmark = pytest.mark.fast

STANDING = standing(1)
CARDS = ProducerNumber(1)
HEAD = replace(first_head(STANDING.epoch, [CARDS]), vector={CARDS: Serial(5)})
PLACE = Place(STANDING, HEAD, {}, None)
NEWEST = STANDING.epoch
FIRST_OFFSET = 100
STAGE = Stage(StageName("settle"), PartitionNumber(0), TopicName("payments"), None, "1", {})  # type: ignore[arg-type]


def header(serial: int, epoch: int = NEWEST, producer: int = CARDS) -> bytes:
    return encode(Header(Epoch(epoch), ProducerNumber(producer), Serial(serial), digest_of(b"")))


OWN = header(6)
NEWER = bytes([9]) + OWN[1:]
FUTURE = header(7, NEWEST + 512)


def sifted(*headers: bytes | None, place: Place = PLACE, installation: Installation = UNMARKED) -> Sifted:
    offsets = pa.array(range(FIRST_OFFSET, FIRST_OFFSET + len(headers)), pa.int64())
    return sift(pa.table({"offset": offsets, "header": pa.array(headers, pa.binary())}), place, "log", installation)


def offsets_of(found: Sifted) -> list[int]:
    offsets: list[int] = found.table.column("offset").to_pylist()
    return offsets


def test_the_records_in_front_of_an_unreadable_one_are_taken() -> None:
    found = sifted(OWN, None, b"short", NEWER, OWN)
    assert offsets_of(found) == [100, 101, 102]
    assert found.stopped is not None
    assert found.stopped.reason.startswith("offset 103 of the topic: a record has a zt header of version 9")
    assert (found.stopped.producer, found.stopped.serial, found.stopped.log) == (0, 104, "log")
    assert not found.asks_for_news


def test_so_are_those_in_front_of_one_from_the_future() -> None:
    found = sifted(OWN, FUTURE, header(7))
    assert offsets_of(found) == [100]
    assert found.stopped is not None
    assert f"its epoch {NEWEST + 512} is newer than any that the database has opened" in found.stopped.reason
    assert "serial 7 of producer 1" in found.stopped.reason
    assert found.asks_for_news, "a moment ago the database may have opened it"


def test_what_was_taken_already_and_what_is_nobodys_is_passed_over() -> None:
    assert sifted(None, bytes(HEADER_BYTES - 1), OWN).stopped is None
    found = sifted(header(5, NEWEST + 512), OWN)
    assert (offsets_of(found), found.stopped) == ([101], None)
    found = sifted(header(9, NEWEST + 512, producer=77), OWN)
    assert (offsets_of(found), found.stopped) == ([100, 101], None)


@pytest.mark.parametrize("strange", [NEWER, FUTURE])
def test_what_an_operator_skips_is_left_out_and_nothing_else(strange: bytes) -> None:
    skip = {(ProducerNumber(0), Serial(102)): Decision(Remedy.SKIP, digest_of(strange))}
    found = sifted(OWN, strange, header(7), place=replace(PLACE, decisions=skip))
    assert (offsets_of(found), found.stopped) == ([100, 102], None)
    other = {(ProducerNumber(0), Serial(102)): Decision(Remedy.SKIP, b"\0" * 8)}
    assert sifted(OWN, strange, header(7), place=replace(PLACE, decisions=other)).stopped is not None
    elsewhere = {(ProducerNumber(0), Serial(101)): Decision(Remedy.SKIP, digest_of(strange))}
    assert sifted(OWN, strange, header(7), place=replace(PLACE, decisions=elsewhere)).stopped is not None


def test_the_future_of_another_installation_is_nothing_to_this_one() -> None:
    ours = Installation(b"east and west 01", accepts_unmarked=False)
    found = sifted(OWN, FUTURE, installation=ours)
    assert (offsets_of(found), found.stopped, found.asks_for_news) == ([100, 101], None, False)


def test_nothing_is_looked_at_twice_where_nothing_is_strange() -> None:
    found = sifted(OWN, header(7))
    assert (offsets_of(found), found.stopped, found.asks_for_news) == ([100, 101], None, False)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (HeadRead(STANDING, HEAD, {}, None), False),
        (HeadRead(standing(2), HEAD, {}, None), True),
        (HeadRead(STANDING, replace(HEAD, claim=9), {}, None), True),
        (Unreachable(), True),
    ],
)
def test_a_database_that_has_gone_on_is_asked_again_first(answer: object, expected: bool) -> None:
    story = has_news(STAGE, PLACE)
    assert isinstance(next(story), ReadHead)
    with pytest.raises(StopIteration) as ended:
        story.send(answer)
    assert ended.value.value is expected


def test_the_stop_is_stored_behind_what_was_taken_however_often_it_takes() -> None:
    poison = sifted(OWN, FUTURE).stopped
    assert poison is not None
    moved = replace(HEAD, next_position=Position(44))
    story = stop_at(STAGE, Taken(moved, 1, 0, 0, 0, 0), poison)
    effect = next(story)
    for answer in (Unreachable(), Indefinite()):
        assert isinstance(effect, RecordPoison)
        assert (effect.expected, effect.poison.position) == (moved.token, 44)
        assert isinstance(story.send(answer), Pause)
        effect = next(story)
    with pytest.raises(StopIteration) as ended:
        story.send(Done())
    assert ended.value.value == replace(poison, position=Position(44))
    refused = stop_at(STAGE, Taken(moved, 1, 0, 0, 0, 0), poison)
    next(refused)
    with pytest.raises(StopIteration) as ended:
        refused.send(Refused("the head has moved"))
    assert ended.value.value is End.SUPERSEDED
