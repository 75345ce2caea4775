"""A mirror on a Spark cluster: its tasks run in executors, which are killed, and every record is copied once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.mirrors import configuration, make_topic, read, running_mirror, wait_until_copied, write
from support.spark_cluster import WORKERS, kill_executor, on_cluster, spark_cluster
from zerotail.lab.layout import Layout

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

PARTITIONS = 4
RECORDS = 2_000
MIRROR = "  - {topology: active-passive, source: east, target: west, topics: [spread], topic_names: prefixed}\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Layout]:
    with spark_cluster() as layout:
        yield layout


def test_each_record_is_copied_once_on_a_cluster_whose_executors_are_killed(cluster: Layout, tmp_path: Path) -> None:
    config = configuration(cluster, tmp_path, MIRROR)
    config.write_text(config.read_text() + yaml.safe_dump({"spark": on_cluster(cluster)}))
    make_topic(cluster, "east", "spread", PARTITIONS)
    with running_mirror(config) as mirror:
        mirror.wait_until_said("running mirror")
        for number, worker in enumerate(WORKERS):
            for partition in range(PARTITIONS):
                values = [b"%d" % value for value in range(number * RECORDS, (number + 1) * RECORDS)]
                write(cluster, "east", "spread", values, partition)
            kill_executor(cluster, worker)
            wait_until_copied(cluster, "spread", "east.spread", PARTITIONS)
    for partition in range(PARTITIONS):
        assert read(cluster, "west", "east.spread", partition) == read(cluster, "east", "spread", partition)
