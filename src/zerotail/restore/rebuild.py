"""Replay through the handler while the records come in order: the state must come out as it is stored.

Each segment is applied when its records are complete; both hash chains must be the recorded ones. At the end the whole
state is compared with the database's, which must still stand at the same segment. Nothing is sent, nothing is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import pyarrow as pa

from zerotail.core.continuity import SegmentRow
from zerotail.core.head import Segment, first_head
from zerotail.core.identity import Epoch
from zerotail.core.record import DIGEST_BYTES, HEADER_NAME, decode_column
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.core.restoration.journal import Journal
from zerotail.core.restoration.proof import VALUE_NAME
from zerotail.deadline import Deadline
from zerotail.errors import Broken, Misused, Refused
from zerotail.failover.replay import Replay
from zerotail.flow.stage import Stage
from zerotail.postgres.connection import session, snapshot
from zerotail.postgres.journal import find_head, read_state
from zerotail.restore.seen import Seen

_CONNECT_SECONDS = 30.0


_READS_ALL = (RestoreStrategy.ORDERED_REFILL, RestoreStrategy.UNBOUNDED, RestoreStrategy.BOUNDED)


def require_all_read(seen: Seen) -> None:
    """`Misused` when a restore does not read every record from the first one on."""
    chosen, into = seen.plan.chosen, seen.wish.into
    if chosen not in _READS_ALL or (into is not None and chosen is not RestoreStrategy.ORDERED_REFILL):
        where = f" into {into}" if into is not None else ""
        raise Misused(
            f"--rebuild-state needs every record from the first one on, and {chosen}{where} does not read them all.",
            code="ZT142",
            tries=["--strategy unbounded", "--strategy bounded", "--strategy ordered-refill"],
        )


class Rebuild:
    """A stage's state, rebuilt from batches in journal order."""

    def __init__(self, stage: Stage, journal: Journal) -> None:
        self._journal = journal
        self._replay = Replay(stage, first_head(Epoch(0), journal.order.producers))
        self._next = 0
        self._values: list[bytes] = []
        self._digests: list[bytes] = []

    @property
    def state(self) -> Mapping[str, bytes]:
        """The state behind the last segment that is complete."""
        return self._replay.state

    def consume(self, batch: pa.RecordBatch) -> None:
        """Take the next records; apply every segment that they complete. `Broken` when a chain differs."""
        packed = decode_column(batch.column(HEADER_NAME)).digests.astype("<u8").tobytes()
        self.take(batch.column(VALUE_NAME).to_pylist(), packed)

    def take(self, values: Sequence[bytes], packed: bytes) -> None:
        """The same of values, and of their digests end to end."""
        self._values += values
        self._digests += [packed[at : at + DIGEST_BYTES] for at in range(0, len(packed), DIGEST_BYTES)]
        while self._next < len(self._journal.segments):
            row = self._journal.segments[self._next]
            count = row.order.records
            if len(self._values) < count:
                return
            self._replay.apply(_segment(row, self._digests[:count], self._replay), self._values[:count])
            del self._values[:count], self._digests[:count]
            self._next += 1

    def require_stored_state(self, dsn: str) -> str:
        """The digest of the state, when it is what the database holds; `Broken` with the first key that differs."""
        stage = self._replay.stage
        with session(dsn, Deadline.after(_CONNECT_SECONDS)) as connection, snapshot(connection):
            head = find_head(connection, stage.name, stage.partition)
            stored = read_state(connection, stage.name, stage.partition)
        if head is None or head.segment != self._replay.head.segment:
            raise Refused(
                f"stage {stage.name} partition {stage.partition} has gone on to segment {head.segment if head else 0} "
                f"while segments up to {self._replay.head.segment} were replayed",
                code="ZT486",
                tries=["zerotail journal replay    # follows a stage that is at work"],
            )
        for key in sorted({*stored, *self.state}):
            if stored.get(key) != self.state.get(key):
                raise Broken(
                    f"the replay of {stage.name} partition {stage.partition} comes to another value of the state key "
                    f"{key!r} at segment {head.segment}",
                    code="ZT646",
                    why="Going live on it would send other messages than the site that was lost.",
                    tries=["zerotail journal replay", "zerotail journal show    says which version made which segment"],
                )
        return state_digest(self.state)


def state_digest(state: Mapping[str, bytes]) -> str:
    """One number for a whole state: its keys and values, in the order of the keys."""
    content = sha256()
    for key, value in sorted(state.items()):
        name = key.encode()
        content.update(len(name).to_bytes(4, "little") + name + len(value).to_bytes(8, "little") + value)
    return content.hexdigest()


def _segment(row: SegmentRow, digests: list[bytes], replay: Replay) -> Segment:
    return Segment(
        segment=row.segment,
        epoch=row.epoch,
        first_position=row.first_position,
        runs=row.runs(),
        digests=tuple(digests),
        decided_at=row.decided_at,
        version=row.version,
        previous=replay.head.chain,
        content=b"",
        chain=row.chain,
        output_chain=row.output_chain,
        decided=row.decided,
    )
