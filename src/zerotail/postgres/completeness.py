"""What a copy holds and the history of another database lacks: see `core.completeness`, which decides.

Whether a standby has replayed all that it holds is asked before its rows are read, in a transaction of its own: the
rows then cover it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from zerotail.core import completeness
from zerotail.core.completeness import Surplus
from zerotail.core.epoch import Cut, Lineage
from zerotail.core.identity import Lsn, ProducerNumber, Timeline
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.lineage import observe_cut, read_standing
from zerotail.postgres.position import read_flushed

T = TypeVar("T")
_REPLAY_SECONDS = 3.0
_LISTED = 10_000
"""Of rows that no dense cut counts; who has more is told of so many."""
# What can be replayed of a log whose primary is gone has been replayed when the startup process waits for more. Its
# last bytes may be the beginning of a record.
_REPLAYED = """
select not pg_is_in_recovery()
    or pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()
    or (pg_get_wal_replay_pause_state() = 'not paused' and exists (
        select from pg_stat_activity where backend_type = 'startup'
           and wait_event in ('RecoveryWalStream', 'RecoveryWalAll', 'RecoveryRetrieveRetryInterval')))
"""
# Kept until the server is started anew; after a start that received nothing the first one says something else.
_WENT_ON = """
select case when pg_is_in_recovery() or pg_last_wal_receive_lsn() is null then null
            else (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint end
"""
# The server's own note of where it left each timeline, for those who may read files.
_MAY_READ = "select has_function_privilege('pg_read_file(text, bigint, bigint, boolean)', 'execute')"
_HISTORY = "select pg_read_file('pg_wal/' || upper(lpad(to_hex(%s::int), 8, '0')) || '.history', 0, 1000000, true)"
_MESSAGES = """
select coalesce(sum(greatest(said.number - coalesce((
         select outbox.first_number + outbox.count - 1 from zerotail.outbox
          where outbox.channel = said.channel and outbox.partition = said.partition and outbox.target = said.target
            and outbox.segment <= coalesce((%s::jsonb ->> (said.stage || '/' || said.partition))::bigint, 0)
          order by outbox.first_number desc limit 1), 0), 0)), 0)::bigint
  from (select head.stage, head.partition, entry ->> 0 as channel, (entry ->> 1)::int as target,
               (entry ->> 2)::bigint as number
          from zerotail.head cross join lateral jsonb_array_elements(head.numbers) as entry) as said
 where not exists (select from zerotail.producer where producer.channel = said.channel)
"""
_LANES = "select channel, partition, target, epoch, incarnation, intended from zerotail.lane"
_SUBMISSIONS = "select producer, id from zerotail.submission limit %s"
# Where clients give the serials, a row may be acknowledged above a hole that somebody else is about to fill.
_BEYOND = """
select row.producer, row.id
  from unnest(%s::int[], %s::int[], %s::bigint[]) as dense (producer, partition, serial)
  join zerotail.instruction as row
    on row.producer = dense.producer and row.partition = dense.partition and row.serial > dense.serial
 limit %s
"""
_MISSING = """
select count(*) from unnest(%s::int[], %s::text[]) as one (producer, id)
 where not exists (select from zerotail.submission as row where row.producer = one.producer and row.id = one.id)
   and not exists (select from zerotail.instruction as row where row.producer = one.producer and row.id = one.id)
   and not exists (select from zerotail.set_aside as row where row.producer = one.producer and row.id = one.id)
"""


class Ask(Protocol):
    """Does some work in a transaction of a database, and answers what came of it."""

    def __call__(self, work: Callable[[Connection], T], /) -> T:
        """The answer."""
        ...


def compare_copies(of_copy: Ask, of_active: Ask) -> Surplus:
    """What the copy holds that the history of the active database lacks."""
    until = time.monotonic() + _REPLAY_SECONDS
    while not (replayed := of_copy(_is_replayed)) and time.monotonic() < until:
        time.sleep(0.1)
    copy, held, inner, lanes, alone, flushed = of_copy(_read_copy)
    survived, history, known, went_on, ends, same_way = of_active(lambda active: _read_history(active, copy))
    missing = of_active(lambda active: _count_missing(active, alone)) if alone else 0
    return Surplus(
        flushed,
        went_on,
        ends,
        replayed,
        same_way,
        messages=of_copy(lambda connection: _count_messages(connection, survived)),
        instructions=completeness.count_instructions(held, survived, inner) + missing,
        segments=completeness.count_segments(held, survived),
        epochs=completeness.count_epochs(copy, history),
        claims=sum(_is_ahead(said, known.get(lane)) for lane, said in lanes.items()),
    )


def _is_replayed(connection: Connection) -> bool:
    return bool(one_row(connection, _REPLAYED)[0])


def _read_copy(connection: Connection) -> tuple[Lineage, Cut, set[ProducerNumber], dict[Any, Any], Any, Lsn]:
    inner = connection.execute(b"select producer from zerotail.producer where channel <> ''").fetchall()
    held = observe_cut(connection)
    dense = [(producer, partition, serial) for (producer, partition), serial in held.serials.items()]
    columns = [list(column) for column in zip(*dense, strict=True)] or [[], [], []]
    alone = connection.execute(_SUBMISSIONS.encode(), (_LISTED,)).fetchall()
    alone += connection.execute(_BEYOND.encode(), (*columns, _LISTED)).fetchall()
    return (
        read_standing(connection).lineage,
        held,
        {ProducerNumber(number) for (number,) in inner},
        _read_lanes(connection),
        alone,
        read_flushed(connection),
    )


def _read_history(active: Connection, copy: Lineage) -> tuple[Cut, Lineage, dict[Any, Any], Lsn | None, Lsn, bool]:
    standing = read_standing(active)
    unknown = completeness.first_unknown(copy, standing.lineage)
    survived = observe_cut(active) if unknown is None else unknown.cut
    went_on, same_way = None, False
    if standing.timeline is not None:
        went_on = _read_went_on(active, standing.timeline)
        same_way = completeness.same_way(copy, standing.lineage, standing.timeline)
    return (
        survived,
        standing.lineage,
        _read_lanes(active),
        went_on,
        read_flushed(active),
        same_way,
    )


def _read_went_on(active: Connection, timeline: Timeline) -> Lsn | None:
    """Where a primary left the timeline before its own; None when it cannot be told any more."""
    if timeline > 1 and one_row(active, _MAY_READ)[0]:
        history = one_row(active, _HISTORY, (timeline,))[0] or ""
        words = [line.split() for line in history.split("\n") if line.strip() and not line.startswith("#")]
        if words:
            high, low = words[-1][1].split("/")
            return Lsn((int(high, 16) << 32) + int(low, 16))
    went_on = one_row(active, _WENT_ON)[0]
    return None if went_on is None else Lsn(int(went_on))


def _read_lanes(connection: Connection) -> dict[Any, Any]:
    return {tuple(row[:3]): tuple(row[3:]) for row in connection.execute(_LANES.encode()).fetchall()}


def _is_ahead(said: tuple[int, int, int], known: tuple[int, int, int] | None) -> bool:
    """Whether a receiver may have been shown a claim, or a message, of which the other database does not know."""
    return known is None or said[:2] > known[:2] or said[2] > known[2]


def _count_messages(connection: Connection, survived: Cut) -> int:
    heads = json.dumps({f"{head.stage}/{head.partition}": head.segment for head in survived.heads})
    return int(connection.execute(_MESSAGES.encode(), (heads,)).fetchall()[0][0])


def _count_missing(active: Connection, alone: list[tuple[int, str]]) -> int:
    """Of rows that no dense cut counts, how many the other database has under no number at all."""
    numbers, names = [producer for producer, _ in alone], [name for _, name in alone]
    return int(active.execute(_MISSING.encode(), (numbers, names)).fetchall()[0][0])
