"""The tail of a replaced database: what it has and the surviving history does not.

It was committed at a site that was lost, and never behind the gate, so nobody outside was told of it: unless the
active site lost it in a failover of its own, and an operator has accepted that. It is kept for audit, in a file with
one JSON object per line, and never applied.

What the surviving history has under the same identifier is not lost, and nobody may be told so. A row that waited to be
numbered, and was numbered there, is no part of the tail; an instruction that was submitted again there is kept, since
the segments beside it name its serial, but marked (`again`) and counted apart.

1. What survived is written down in the cut of the first epoch that the replaced database does not know: whatever lies
   behind that cut is the tail. Without such an epoch the other database itself is the measure.
2. Commits that still wait for the lost standby are invisible. Their sessions are ended first: the clients learn that
   nobody knows, which is true, and the rows are kept.
3. Our tables stay locked against writers from the first row that is read until the server stops, so what is kept is
   all there ever was (decision 0012). A standby takes no writes and no such lock. In both nobody opens an epoch
   meanwhile: who wants to is declined.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

from zerotail.core.epoch import Cut, Lineage
from zerotail.core.identity import Epoch, Lsn
from zerotail.deadline import Deadline
from zerotail.errors import Refused, Unavailable
from zerotail.postgres.connection import Connection, connect, translated, where
from zerotail.postgres.lineage import observe_cut, read_standing
from zerotail.postgres.named_locks import take_database
from zerotail.postgres.position import read_position
from zerotail.postgres.promotion import is_in_recovery
from zerotail.postgres.standstill import END_SESSIONS, take_locks
from zerotail.postgres.vigil import cut_after
from zerotail.private import open_file

_ANSWER_SECONDS = 20.0
TAIL_SECONDS = 1800.0
"""A site that worked on for long behind a cut link has much to keep."""
_END_WAITING = f"{END_SESSIONS} and wait_event = 'SyncRep'".encode()
_ROWS_AT_ONCE = 2_000
_PATIENT = """
select set_config(name, '0', false) from pg_settings
 where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')
"""
"""The second one is not known before PostgreSQL 17."""
_LOCK = b"""
lock table zerotail.epoch, zerotail.instruction, zerotail.submission, zerotail.head, zerotail.segment, zerotail.outbox
in share mode
"""
_INSTRUCTIONS = """
select producer, partition, serial, id, value, submitted_at from zerotail.instruction
 where serial > coalesce((%s::jsonb ->> (producer || '/' || partition))::bigint, 0) order by producer, partition, serial
"""
# Row by row, as in `feed.py`; a row that waits to be numbered there will be applied, too.
_KNOWN = """
select offered.place - 1
  from unnest(%s::integer[], %s::integer[], %s::text[], %s::bytea[]) with ordinality
       as offered (producer, partition, id, value, place)
 where (select true from zerotail.instruction as known
         where known.producer = offered.producer and known.id = offered.id
           and known.partition = offered.partition and known.value = offered.value limit 1) is not null
    or (select true from zerotail.submission as known
         where known.producer = offered.producer and known.id = offered.id
           and known.partition = offered.partition and known.value = offered.value limit 1) is not null
"""
_SUBMISSIONS = "select producer, partition, id, value, submitted_at from zerotail.submission order by producer, id"
_SEGMENTS = """
select stage, partition, segment, epoch, first_position, producers, counts, first_serials, record_order, decided_at,
       version, chain, output_chain
  from zerotail.segment where segment > coalesce((%s::jsonb ->> (stage || '/' || partition))::bigint, 0)
 order by stage, partition, segment
"""
_MESSAGES = """
select outbox.channel, outbox.partition, target, first_number, outbox.count, messages, outbox.segment
  from zerotail.outbox
  join zerotail.head on head.partition = outbox.partition
   and head.numbers @> jsonb_build_array(jsonb_build_array(outbox.channel, outbox.target))
 where outbox.segment > coalesce((%s::jsonb ->> (head.stage || '/' || head.partition))::bigint, 0)
 order by outbox.channel, outbox.partition, target, first_number
"""
_EPOCHS = (
    "select epoch, site, timeline, durability, phase, cause, operator, opened_at from zerotail.epoch order by epoch"
)


Row = dict[str, Any]
Known = Callable[[Sequence[Row]], set[int]]
"""Which of these instructions or submissions the surviving history has, by their place."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What was kept of a replaced database, and where."""

    site: str
    epoch: Epoch
    position: Lsn
    instructions: int
    submissions: int
    segments: int
    messages: int
    file: str
    released: bool = False
    """Whether it was behind the gate, so that it may have been sent."""
    again: int = 0
    """Instructions of it that the surviving history has, too: they were submitted again."""

    def told(self) -> str:
        """In one line."""
        again = f" ({self.again} more were submitted again, and this history has them)" if self.again else ""
        said = "released and lost to this history" if self.released else "never applied"
        return (
            f"kept of {self.site}, {said}: {self.instructions + self.submissions} instructions{again}, "
            f"{self.segments} segments, {self.messages} messages, in {self.file}"
        )


class LockedDatabase:
    """A database that is about to be replaced: looked at, and locked against writers until it stops."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection = connect(dsn, Deadline.after(_ANSWER_SECONDS), application="zerotail rejoin")

    def keep_tail(
        self,
        site: str,
        survived: Cut,
        common: Lineage,
        folder: Path,
        *,
        released: bool = False,
        known: Known = lambda _: set(),
    ) -> Tail:
        """Write the tail behind `survived` to a new file; the tables stay locked."""
        connection = self._connection
        with translated(where(self._dsn)), cut_after(connection, 2 * _ANSWER_SECONDS):
            _notice_a_lost_operator(connection)
            in_recovery = is_in_recovery(connection)
            connection.execute(b"begin read only" if in_recovery else b"begin")
            if not take_database(connection):
                raise Refused("somebody opens an epoch in it, or replaces it already.", code="ZT414")
            if not in_recovery:
                _lock(connection)
            epoch, position = read_standing(connection).epoch, read_position(connection)
        with translated(where(self._dsn)), cut_after(connection, TAIL_SECONDS):
            path = folder / f"tail-{site}-{epoch}-{position}.jsonl"
            counts = _write(path, _rows(connection, survived, common, known))
        return Tail(
            site,
            epoch,
            position,
            counts["instruction"],
            counts["submission"],
            counts["segment"],
            counts["messages"],
            str(path),
            released,
            counts["again"],
        )

    def still_in(self, epoch: Epoch) -> bool:
        """Whether the lock still holds and the database is in this epoch: the second look before it is replaced."""
        try:
            with translated(where(self._dsn)), cut_after(self._connection, _ANSWER_SECONDS):
                if self._connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
                    return False
                return read_standing(self._connection).epoch == epoch
        except Unavailable:
            return False

    def close(self) -> None:
        """Give the lock back, if the server is still there."""
        self._connection.close()


def survived_of(replaced: Lineage, active: Connection) -> Cut:
    """What the active history has of a database with this lineage."""
    for row in read_standing(active).lineage.rows:
        if row.epoch not in replaced:
            return row.cut
    return observe_cut(active)


def _notice_a_lost_operator(connection: Connection) -> None:
    """Let the server find out within some ten seconds that our machine is gone, and give the locks back; and not take
    them from us while a copy is prepared, however little patience it has with others.
    """
    connection.execute(b"set tcp_keepalives_idle = 4; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3")
    connection.execute(_PATIENT.encode())


def _lock(connection: Connection) -> None:
    """Lock our tables against writers; sessions that wait for the lost standby, or stand still, are ended."""
    if not take_locks(connection, _LOCK, also_end=_END_WAITING, deadline=Deadline.after(_ANSWER_SECONDS)):
        raise Unavailable("somebody keeps writing to the database that is to be replaced.", code="ZT414")


def find_known(connection: Connection, rows: Sequence[Row]) -> set[int]:
    """Which of these rows the database has under their identifiers, for the same partition and with the same bytes."""
    connection.execute(b"set local enable_seqscan = off")
    columns = [[row[name] for row in rows] for name in ("producer", "partition", "id", "value")]
    return {place for (place,) in connection.execute(_KNOWN.encode(), columns).fetchall()}


def _rows(connection: Connection, survived: Cut, common: Lineage, known_there: Known) -> Iterator[Row]:
    serials = json.dumps({f"{producer}/{partition}": last for (producer, partition), last in survived.serials.items()})
    heads = json.dumps({f"{head.stage}/{head.partition}": head.segment for head in survived.heads})
    known = {row.epoch for row in common.rows}
    for row in _named(connection, "epoch", _EPOCHS):
        if row["epoch"] not in known:
            yield row
    for row, again in _looked_up(_named(connection, "instruction", _INSTRUCTIONS, serials), known_there):
        yield {**row, "again": True} if again else row
    for row, again in _looked_up(_named(connection, "submission", _SUBMISSIONS), known_there):
        if not again:
            yield row
    yield from _named(connection, "segment", _SEGMENTS, heads)
    yield from _named(connection, "messages", _MESSAGES, heads)


def _looked_up(rows: Iterator[Row], known: Known) -> Iterator[tuple[Row, bool]]:
    """Each row, and whether the surviving history has it."""
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        found = known(some)
        for place, row in enumerate(some):
            yield row, place in found


def _named(connection: Connection, kind: str, query: str, *parameters: str) -> Iterator[Row]:
    with connection.cursor(f"tail_{kind}") as found:  # at the server: a site that was long alone has much
        found.itersize = _ROWS_AT_ONCE
        found.execute(query.encode(), parameters)
        names = [column.name for column in found.description or ()]
        for row in found:
            yield {"kind": kind, **dict(zip(names, row, strict=True))}


def _write(path: Path, rows: Iterator[Row]) -> dict[str, int]:
    """Write the rows, forced to disk; how many there are of each kind."""
    counts = dict.fromkeys(("epoch", "instruction", "again", "submission", "segment", "messages"), 0)
    with open_file(path, "w", encoding="utf-8") as file:
        for row in rows:
            counts["again" if "again" in row else row["kind"]] += row["count"] if row["kind"] == "messages" else 1
            file.write(json.dumps(row, default=_text) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return counts


def _text(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
