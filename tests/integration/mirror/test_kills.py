"""The Spark mirror is killed again and again, and so are brokers and the link: every record once, in order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.blows import ENDS_THE_MIRROR, KINDS, deal, order_of_blows
from support.mirrors import configuration, make_topic, read, start_mirror, wait_until_copied, write
from support.seeds import seed_of
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.timeout(5400)

KILLS = int(os.environ.get("ZT_TEST_MIRROR_KILLS", "100"))
SEED = seed_of("mirror kills")
MIRROR = "  - {topology: active-passive, source: east, target: west, topics: [killed], topic_names: prefixed}\n"


@pytest.mark.fast
def test_every_kind_of_blow_has_its_turn_whatever_the_seed() -> None:
    for seed in range(100):
        order = order_of_blows(3 * len(KINDS), seed)
        assert {kind: order.count(kind) for kind in KINDS} == dict.fromkeys(KINDS, 3)
        assert set(order[: len(KINDS)]) == set(KINDS)


@pytest.mark.parametrize(
    "blows", [pytest.param(len(KINDS), marks=pytest.mark.servers), pytest.param(KILLS, marks=pytest.mark.nightly)]
)
def test_every_record_is_copied_once_whatever_is_killed(lab: Layout, tmp_path: Path, blows: int) -> None:
    topic = f"killed-{blows}"
    config = configuration(lab, tmp_path, MIRROR.replace("[killed]", f"[{topic}]"))
    make_topic(lab, "east", topic, 2)
    fell: list[str] = []
    missed: list[str] = []
    written = 0
    mirror = start_mirror(config)
    try:
        mirror.wait_until_said("running mirror")
        for kind in order_of_blows(blows, SEED):
            for partition in range(2):
                write(lab, "east", topic, [b"%d" % number for number in range(written, written + 500)], partition)
            written += 500
            blow = deal(lab, mirror, kind)
            if kind in ENDS_THE_MIRROR:
                wait_until("it has ended", lambda: mirror.process.poll() is not None, Deadline.after(60))  # noqa: B023
                mirror.end()
                mirror = start_mirror(config)
            wait_until_copied(lab, topic, f"east.{topic}", 2)
            wait_until(f"a {kind} is there again", lambda: blow.survived(mirror), Deadline.after(60))  # noqa: B023
            fell.append(kind) if blow.fell else missed.append(kind)
    finally:
        mirror.end()
    assert not missed
    assert {kind: fell.count(kind) > 0 for kind in KINDS} == dict.fromkeys(KINDS, True)
    for partition in range(2):
        assert [value for _, value, *_ in read(lab, "west", f"east.{topic}", partition)] == [
            b"%d" % number for number in range(written)
        ]


@pytest.mark.nightly
def test_of_two_mirrors_the_older_one_ends(lab: Layout, tmp_path: Path) -> None:
    text = MIRROR.replace("[killed]", "[twice]")
    config = configuration(lab, tmp_path, text)
    make_topic(lab, "east", "twice")
    older = start_mirror(config)
    newer = None
    try:
        write(lab, "east", "twice", [b"1"])
        wait_until_copied(lab, "twice", "east.twice")
        newer = start_mirror(config)
        newer.wait_until_said("running mirror")
        write(lab, "east", "twice", [b"2"])
        wait_until("the older one has ended", lambda: older.process.poll() is not None, Deadline.after(120))
        assert older.process.returncode == 6
        write(lab, "east", "twice", [b"3"])
        wait_until_copied(lab, "twice", "east.twice")
        assert [value for _, value, *_ in read(lab, "west", "east.twice")] == [b"1", b"2", b"3"]
    finally:
        older.end()
        if newer is not None:
            newer.end()
