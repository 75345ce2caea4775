"""The Spark mirror is killed again and again, and so are brokers and the link: every record once, in order."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mirrors import (
    RunningMirror,
    configuration,
    make_topic,
    read,
    start_mirror,
    wait_until_copied,
    write,
)
from support.seeds import seed_of
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.clusters import temporary_clusters
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout
from zerotail.lab.link import CutMode, LinkControl

pytestmark = pytest.mark.timeout(5400)

KILLS = int(os.environ.get("ZT_TEST_MIRROR_KILLS", "12"))
SEED = seed_of("mirror kills")
BLOWS = ["worker"] * 6 + ["east.kafka", "west.kafka"] + ["link"] * 2 + ["jvm", "driver"]
MIRROR = "  - {topology: active-passive, source: east, target: west, topics: [killed], topic_names: prefixed}\n"


@pytest.fixture(scope="module")
def clusters() -> Iterator[Layout]:
    with temporary_clusters() as layout:
        yield layout


def strike(layout: Layout, mirror: RunningMirror, blow: str) -> None:
    """One fault; brokers and link come back at once."""
    if blow.endswith("kafka"):
        assert kill_target(layout, blow).bit
        start_target(layout, blow)
    elif blow == "link":
        control = LinkControl(layout.link_control_port)
        control.cut(mode=CutMode.RESET, deadline=Deadline.after(10))
        control.heal(deadline=Deadline.after(10))
    else:
        before = len(mirror.killed)
        mirror.kill(blow)
        assert len(mirror.killed) == before + 1, f"no {blow} was found to kill"


@pytest.mark.servers
def test_every_record_is_copied_once_whatever_is_killed(clusters: Layout, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    config = configuration(clusters, tmp_path, MIRROR)
    make_topic(clusters, "east", "killed", 2)
    written = 0
    mirror = start_mirror(config)
    try:
        mirror.wait_until_said("running mirror")
        for _ in range(KILLS):
            for partition in range(2):
                numbers = [b"%d" % number for number in range(written, written + 500)]
                write(clusters, "east", "killed", numbers, partition)
            written += 500
            blow = chance.choice(BLOWS)
            strike(clusters, mirror, blow)
            if blow in ("driver", "jvm"):
                wait_until("it has ended", lambda: mirror.process.poll() is not None, Deadline.after(60))  # noqa: B023
                mirror.end()
                mirror = start_mirror(config)
            wait_until_copied(clusters, "killed", "east.killed", 2)
    finally:
        mirror.end()
    for partition in range(2):
        assert [value for _, value, *_ in read(clusters, "west", "east.killed", partition)] == [
            b"%d" % number for number in range(written)
        ]


@pytest.mark.nightly
def test_of_two_mirrors_the_older_one_ends(clusters: Layout, tmp_path: Path) -> None:
    text = MIRROR.replace("[killed]", "[twice]")
    config = configuration(clusters, tmp_path, text)
    make_topic(clusters, "east", "twice")
    older = start_mirror(config)
    newer = None
    try:
        write(clusters, "east", "twice", [b"1"])
        wait_until_copied(clusters, "twice", "east.twice")
        newer = start_mirror(config)
        newer.wait_until_said("running mirror")
        write(clusters, "east", "twice", [b"2"])
        wait_until("the older one has ended", lambda: older.process.poll() is not None, Deadline.after(120))
        assert older.process.returncode == 6
        write(clusters, "east", "twice", [b"3"])
        wait_until_copied(clusters, "twice", "east.twice")
        assert [value for _, value, *_ in read(clusters, "west", "east.twice")] == [b"1", b"2", b"3"]
    finally:
        older.end()
        if newer is not None:
            newer.end()
