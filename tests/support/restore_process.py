"""A restore as a process of its own, to be killed or to be kept short of memory.

    python restore_process.py '{"bootstrap": …, "dsn": …, "stage": …, "topic": …, "strategy": …}'

`kill_at` ends it by SIGKILL at a commit: 2 in front of the second, -2 behind it. With `commits` they are small.
`data_bytes` is by how much its data may grow from the moment at which everything is imported; the operating system
enforces it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import zerotail.core.merge as merging
import zerotail.kafka.ordered_writer as writing
from zerotail.core.identity import PartitionNumber, SiteName, StageName, TopicName
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings
from zerotail.postgres.feed_arrow import open_connection
from zerotail.restore import Place, Wish, plan_restore, run_restore

_SMALL_TRANSACTION = 500


def main(asked: dict[str, Any]) -> None:
    place = Place(
        Cluster(asked["bootstrap"]),
        asked["dsn"],
        SiteName("east"),
        StageName(asked["stage"]),
        TopicName(asked["topic"]),
        PartitionNumber(0),
        TopicSettings(1, 1),
    )
    into = asked.get("into")
    wish = Wish(
        RestoreStrategy(asked["strategy"]),
        memory_bytes=asked.get("memory_bytes", 512_000_000),
        into=None if into is None else TopicName(into),
    )
    if "commits" in asked or "kill_at" in asked:
        writing.RECORDS_PER_TRANSACTION = _SMALL_TRANSACTION
        merging.ROWS_PER_BATCH = _SMALL_TRANSACTION
    if "kill_at" in asked:
        _kill_at_commit(asked["kill_at"])
    if "data_bytes" in asked:
        open_connection(asked["dsn"])
        limit = _data_bytes() + asked["data_bytes"]
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    seen = plan_restore(place, wish)
    report = run_restore(seen, check_values=False)
    said = {"records": report.records, "chain": report.chain, "grown": report.outcome.memory_bytes}
    sys.stdout.write(json.dumps(said))


def _kill_at_commit(number: int) -> None:
    commit, commits = writing.OrderedWriter.commit, 0

    def counted(writer: writing.OrderedWriter) -> None:
        nonlocal commits
        commits += 1
        if commits == number:
            os.kill(os.getpid(), signal.SIGKILL)
        commit(writer)
        if commits == -number:
            os.kill(os.getpid(), signal.SIGKILL)

    writing.OrderedWriter.commit = counted  # type: ignore[method-assign, assignment]


def _data_bytes() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
