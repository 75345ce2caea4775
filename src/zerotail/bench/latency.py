"""How long each instruction took from its row to the receiver.

The receiver's record says when each number arrived, the journal which record has that number (each record of the
example emits one message, so number n is position n - 1), and the row when it was inserted, a moment before its commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zerotail.core.identity import PartitionNumber, StageName
from zerotail.deadline import Deadline
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import MessageAttempt, Verdict
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.segment import all_rows

Seconds = npt.NDArray[np.float64]
_SUBMITTED = """
select serial, extract(epoch from submitted_at)::float from zerotail.instruction
 where producer = %s and partition = %s and submitted_at >= to_timestamp(%s)
"""


@dataclass(frozen=True, slots=True)
class Latency:
    """In seconds, over so many messages."""

    messages: int
    p50: float
    p99: float


def measure_latency(database: str, control: ReceiverControl, stage: StageName, channel: str, since: float) -> Latency:
    """Of every message whose row was inserted after `since`, in seconds since 1970."""
    arrivals: dict[int, dict[int, float]] = {}
    for attempt in control.attempts(deadline=Deadline.after(120)):
        if (
            isinstance(attempt, MessageAttempt)
            and attempt.channel == channel
            and attempt.verdict is Verdict.ACCEPTED
            and attempt.unix_seconds >= since
        ):
            arrivals.setdefault(attempt.partition, {})[attempt.number] = attempt.unix_seconds
    with session(database, Deadline.after(60)) as connection:
        found = [
            seconds
            for partition, by_number in arrivals.items()
            for seconds in _of_partition(connection, stage, PartitionNumber(partition), by_number, since)
        ]
    took = np.array(found)
    p50, p99 = np.percentile(took, [50, 99])
    return Latency(len(took), float(p50), float(p99))


def _of_partition(
    connection: Connection, stage: StageName, partition: PartitionNumber, arrivals: dict[int, float], since: float
) -> Iterator[float]:
    submitted: dict[int, dict[int, float]] = {}
    for row in all_rows(connection, stage, partition):
        if row.next_position <= min(arrivals) - 1:
            continue
        position = row.first_position
        for producer, first, count in row.runs():
            if producer not in submitted:
                rows = connection.execute(_SUBMITTED.encode(), (producer, partition, since)).fetchall()
                submitted[producer] = dict(rows)
            for step in range(count):
                arrived = arrivals.get(position + 1)
                inserted = submitted[producer].get(first + step)
                if arrived is not None and inserted is not None:
                    yield arrived - inserted
                position += 1  # type: ignore[assignment]
