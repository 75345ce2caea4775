"""A Spark job that says where its tasks run and waits to be let go: `python cluster_job.py MASTER FOLDER SECRET`.

Each task leaves a file `at-PART-TASK` in the folder and goes on when `go` is there; the job prints which part of the
lab finished each task, and what it made of it with the example's handler.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

TASKS = 6


def work(folder: str) -> Any:
    """The function that is sent to the executors."""

    def in_task(batches: Iterator[Any]) -> Iterator[Any]:
        import flows  # type: ignore[import-not-found]  # from the folder of the cluster's site
        import pyarrow

        from zerotail.deadline import Deadline, wait_until

        for batch in batches:
            (number,) = batch.column(0).to_pylist()
            part = os.environ["ZEROTAIL_LAB_PART"]
            (Path(folder) / f"at-{part}-{number}").touch()
            wait_until("the test lets us go", (Path(folder) / "go").exists, Deadline.after(120))
            record = flows.to_record(msgspec.json.encode({"id": str(number), "account": "a", "amount": number}))
            yield pyarrow.RecordBatch.from_pydict({"part": [part], "record": [record.decode()]})

    return in_task


def main(master: str, folder: str, secret: str) -> None:
    """Run the job and print its rows."""
    from zerotail.spark.session import session_for_a_look

    with session_for_a_look(master, {"spark.authenticate.secret": Path(secret).read_text()}) as spark:
        rows = spark.range(0, TASKS, 1, TASKS).mapInArrow(work(folder), "part string, record string").collect()
    sys.stdout.write(msgspec.json.encode([[row["part"], row["record"]] for row in rows]).decode() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
