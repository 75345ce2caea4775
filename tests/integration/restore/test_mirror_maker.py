"""Idea three of the notes, with a real MirrorMaker 2: what it brought is kept, and only the lost tail is written."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import pytest

from support.journal import FIRST, Taken
from support.restoring import EPOCH, Disaster, Kept, cluster_of, disorder, make_disaster, write_log
from zerotail.bench.maker import running_maker
from zerotail.core.identity import SiteName
from zerotail.core.record import Header, digest_of, encode
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import MissingTopicError, admin_client, ensure_topic
from zerotail.kafka.ordered_writer import OrderedWriter
from zerotail.kafka.partition_log import PartitionLog
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.nightly
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Mirrored:
    """A disaster of west: the topic in east, as far as it had come when the mirror was stopped."""

    name: str
    source: Disaster
    kept: int
    """Records of the journal that had been written to east's topic by then."""


def write_in_transactions(disaster: Disaster, records: list[Taken], most: int = 37) -> None:
    """Many small transactions: their marks shift every offset behind them."""
    place = disaster.place
    ensure_topic(admin_client(place.cluster), place.topic, place.shape)
    with closing(OrderedWriter(place.cluster, place.topic, place.partition)) as writer:
        for first in range(0, len(records), most):
            some = records[first : first + most]
            headers = [encode(Header(EPOCH, producer, serial, digest_of(value))) for producer, serial, value in some]
            writer.write([value for _, _, value in some], headers)
            writer.commit()


def with_repeats(records: list[Taken]) -> list[Kept]:
    """One producer sends its last few again, now and then, as after a fault."""
    written: list[Kept] = []
    for place, record in enumerate(records, 1):
        written.append(record)
        if not place % 90:
            mine = [one for one in records[:place] if one[0] == record[0]]
            written += mine[-7:]
    return written


def make_sources(lab: Layout) -> list[Mirrored]:
    """In transactions; with repeats; and one that was mirrored long ago."""
    made = []
    for seed, (name, share) in enumerate((("transactions", 0.8), ("repeats", 0.9), ("long ago", 0.1)), 71):
        disaster = make_disaster(lab, seed, segments=30, most=90)
        kept = int(len(disaster.taken) * share)
        if name == "transactions":
            write_in_transactions(disaster, list(disaster.taken[:kept]))
        elif name == "repeats":
            write_log(disaster.place, with_repeats(list(disaster.taken[:kept])))
        else:
            write_log(disaster.place, disaster.taken[:kept])
        made.append(Mirrored(name, disaster, kept))
    return made


def copied(disaster: Disaster) -> int:
    """Records that can be read in the topic."""
    log = PartitionLog(disaster.place.cluster, disaster.place.topic, FIRST)
    try:
        return sum(len(batch) for batch in log.open(None))
    except MissingTopicError:
        return 0


@pytest.fixture(scope="module")
def mirrored(warm_lab: Layout, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Mirrored, Disaster]]:
    """What the mirror had brought to west when it was stopped."""
    sources = make_sources(warm_lab)
    clusters = {"east": cluster_of(warm_lab), "west": Cluster(warm_lab.bootstrap("west"))}
    west = {
        one.name: replace(one.source, place=replace(one.source.place, cluster=clusters["west"], site=SiteName("west")))
        for one in sources
    }
    topics = [str(one.source.place.topic) for one in sources]
    with running_maker("restored", clusters, topics, tmp_path_factory.mktemp("mm2")):
        for one in sources:
            wanted = copied(one.source)
            wait_until(
                f"{one.name} is mirrored",
                partial(is_copied, west[one.name], wanted),
                Deadline.after(PATIENCE_SECONDS),
                every_seconds=0.5,
            )
    return {one.name: (one, west[one.name]) for one in sources}


def is_copied(disaster: Disaster, wanted: int) -> bool:
    return copied(disaster) >= wanted


@pytest.mark.parametrize("name", ["transactions", "repeats", "long ago"])
def test_only_the_tail_behind_the_mirror_is_written_and_the_whole_is_in_journal_order(
    mirrored: dict[str, tuple[Mirrored, Disaster]], name: str
) -> None:
    one, disaster = mirrored[name]
    report = disaster.run("mirror-tail")
    assert report.outcome.writes == len(disaster.taken) - one.kept
    seen: dict[tuple[int, int], bytes] = {}
    for producer, serial, value in disaster.content():
        seen.setdefault((producer, serial), value)
    assert [(*place, value) for place, value in seen.items()] == list(disaster.taken)
    again, values = disaster.run_collecting("bounded", 5)
    assert values == [value for _, _, value in disaster.taken]
    assert again.chain == report.chain
    assert again.outcome.writes == 0


def test_a_tail_that_producers_wrote_independently_is_restored_at_the_consumer(lab: Layout) -> None:
    disaster = make_disaster(lab, 77, segments=30, most=90)
    kept = len(disaster.taken) // 2
    write_log(disaster.place, disaster.taken[:kept])
    write_log(disaster.place, disorder(disaster.taken[kept:], 77))
    for strategy, cache in (("unbounded", None), ("bounded", 11)):
        report, values = disaster.run_collecting(strategy, cache)
        assert values == [value for _, _, value in disaster.taken]
        assert report.outcome.writes == 0
