"""MirrorMaker 2 is killed as our mirror is, supervised by us: what it loses and doubles is counted and printed."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mirrors import configuration, make_topic, partition_count, read, start_mirror, write
from support.seeds import seed_of
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.clusters import temporary_clusters
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout

KILLS = int(os.environ.get("ZT_TEST_MAKER_KILLS", "5"))
SEED = seed_of("maker kills")
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300 + 120 * KILLS)]

MIRROR = (
    "  - {topology: active-passive, source: east, target: west, topics: [made], engine: mm2, topic_names: prefixed}\n"
)
BLOWS = ["maker"] * 3 + ["east.kafka", "west.kafka"]
AT_ONCE = 500


@pytest.fixture(scope="module")
def clusters() -> Iterator[Layout]:
    with temporary_clusters() as layout:
        yield layout


def numbers(first: int, count: int = AT_ONCE) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, first + count)]


def copied(layout: Layout) -> list[bytes | None]:
    if partition_count(layout, "west", "east.made") == 0:
        return []
    return [value for _, value, *_ in read(layout, "west", "east.made")]


def test_mirrormaker_is_started_again_each_time_and_what_it_loses_and_doubles_is_counted(
    clusters: Layout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    config = configuration(clusters, tmp_path, MIRROR)
    make_topic(clusters, "east", "made")
    write(clusters, "east", "made", numbers(0))
    written = AT_ONCE
    mirror = start_mirror(config)
    blows: Counter[str] = Counter()

    def arrived(number: int) -> bool:
        return b"%d" % number in copied(clusters)

    try:
        for _ in range(KILLS):
            wait_until("it copies", lambda: arrived(written - 1), Deadline.after(150), every_seconds=0.5)  # noqa: B023
            write(clusters, "east", "made", numbers(written))
            written += AT_ONCE
            blow = chance.choice(BLOWS)
            blows[blow] += 1
            if blow == "maker":
                mirror.kill("maker")
            else:
                assert kill_target(clusters, blow).bit
                start_target(clusters, blow)
        wait_until("it copies", lambda: arrived(written - 1), Deadline.after(150), every_seconds=0.5)
        seen = copied(clusters)
    finally:
        mirror.end()
    assert mirror.said().count("was ended by signal 9") == blows["maker"]
    count = Counter(seen)
    lost = sum(number not in count for number in numbers(0, written))
    doubled = len(seen) - len(count)
    with capsys.disabled():
        print(  # noqa: T201 - the figure is what this is for
            f"\nMirrorMaker 2, exactly once, {dict(blows)}: {written} written, {len(seen)} copies, "
            f"{lost} lost, {doubled} doubled"
        )
    assert len(count) + lost == written
