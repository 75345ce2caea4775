"""A mirror on Spark, run as a user runs it: topics found, made, grown and copied; status, canary, offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import call
from support.mirrors import (
    configuration,
    grow_topic,
    make_topic,
    partition_count,
    read,
    running_mirror,
    wait_until_copied,
    write,
)
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.nightly

MIRROR = '  - {topology: active-passive, source: east, target: west, topics: ["run-.*"], topic_names: prefixed}\n'


def test_a_mirror_finds_its_topics_and_copies_what_comes(lab: Layout, tmp_path: Path) -> None:
    config = configuration(lab, tmp_path, MIRROR)
    make_topic(lab, "east", "run-1", 2, retention_ms="86400000")
    for partition in range(2):
        write(lab, "east", "run-1", [b"%d" % number for number in range(500)], partition)
    with running_mirror(config, "--at", "west") as mirror:
        mirror.wait_until_said("run-1: east.run-1 at west: made")
        wait_until_copied(lab, "run-1", "east.run-1", 2)
        make_topic(lab, "east", "run-2")
        grow_topic(lab, "east", "run-1", 3)
        wait_until("the copy has grown", lambda: partition_count(lab, "west", "east.run-1") == 3, Deadline.after(60))
        write(lab, "east", "run-2", [b"new topic"])
        write(lab, "east", "run-1", [b"new partition"], 2)
        wait_until_copied(lab, "run-2", "east.run-2")
        wait_until_copied(lab, "run-1", "east.run-1", 3)
        for partition in range(3):
            assert read(lab, "west", "east.run-1", partition) == read(lab, "east", "run-1", partition)
        environment = {"ZEROTAIL_STATE": str(mirror.state)}
        (flow,) = call("mirror", "status", "--config", str(config), "--json", environment=environment).answer(
            "mirror-status"
        )["flows"]
        assert flow["runs"] is True
        rows = {(row["topic"], row["partition"]): row for row in flow["partitions"]}
        assert rows["run-1", 0]["lag_records"] == 0
        assert rows["run-1", 0]["metrics"]["batch-size-avg"] > 0
        flown = call("mirror", "canary", "--count", "3", "--every", "0.2", "--late", "30", "--config", str(config))
        assert "3 of 3 canaries arrived, 0 lost" in flown.out, flown.out + flown.err
    assert mirror.process.returncode == 0
