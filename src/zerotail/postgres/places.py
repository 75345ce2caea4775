"""Places of a consumer in PostgreSQL, in the database that takes the results.

The place is moved in the same message that commits: between the comparison and the commit there is no moment in which
a frozen client could hold the place and keep its successor waiting. A comparison that fails is an error of its own,
which the server meets before it gets to the commit.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from psycopg import sql

from zerotail.consume.places import Elsewhere, Failed, Fenced, Lost, Moved, Partition, Place
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.postgres.connection import Connection, connect, where
from zerotail.postgres.transaction import signals_held_back

TABLE = """
create table if not exists zerotail_place (
    consumer_group text    not null,
    topic          text    not null,
    partition      integer not null,
    next_offset    bigint,
    generation     bigint  not null,
    moved_at       timestamptz not null default clock_timestamp(),
    log            text,
    primary key (consumer_group, topic, partition)
);
alter table zerotail_place add column if not exists log text
"""
# A place of before this column was kept has no log: the one in which it is claimed first is believed to be its own.
_CLAIM = """
with claimed as (
    insert into zerotail_place as known (consumer_group, topic, partition, generation, log)
    values (%(group)s, %(topic)s, %(partition)s, 1, %(log)s)
    on conflict (consumer_group, topic, partition) do update set generation = known.generation + 1, log = excluded.log
     where coalesce(known.log, excluded.log) = excluded.log or known.next_offset is null
    returning next_offset, generation, log
)
select next_offset, generation, log from claimed
union all
select null, null, log from zerotail_place
 where consumer_group = %(group)s and topic = %(topic)s and partition = %(partition)s
   and not exists (select from claimed)
"""
# No row moved: division by zero, which ends the transaction before the commit is read.
_MOVE = sql.SQL("""
with moved as (
    update zerotail_place set next_offset = {next_offset}, moved_at = clock_timestamp()
     where consumer_group = {group} and topic = {topic} and partition = {partition} and generation = {generation}
       and next_offset is not distinct from {expected}
    returning 1
) select 1 / count(*) from moved; commit
""")
_CONNECT_SECONDS = 5.0


class PostgresPlaces:
    """Places and results in one database. The work gets the session, inside a transaction that it must not end."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._session: Connection | None = None

    def create_table(self) -> None:
        """Make the table for places, if it is missing."""
        self._connected().execute(TABLE.encode())

    def claim(self, group: str, partition: Partition, log: str) -> Place | Elsewhere | Lost:
        """Become the one who works on a partition for a group, in this log."""
        of = {"group": group, "topic": partition.topic, "partition": partition.number, "log": log}
        try:
            row = self._connected().execute(_CLAIM.encode(), of).fetchone()
        except (Unavailable, psycopg.OperationalError, psycopg.InterfaceError) as error:
            return self._lost(error)
        assert row is not None  # noqa: S101 - an upsert answers with its row
        next_offset, generation, known = row
        return Elsewhere(known) if generation is None else Place(partition, next_offset, generation)

    def transact(self, group: str, place: Place, work: Callable[[Connection], int]) -> Moved | Fenced | Lost | Failed:
        """Do the work and move the place to the offset that it answers with, both or neither."""
        try:
            session = self._connected()
            session.execute(b"begin")
        except (Unavailable, psycopg.OperationalError, psycopg.InterfaceError) as error:
            return self._lost(error)
        try:
            next_offset = work(session)
        except Exception as error:  # noqa: BLE001 - it is the user's own code; whatever it raises is its failure
            return self._failed(session, error)
        move = _MOVE.format(
            next_offset=sql.Literal(next_offset),
            group=sql.Literal(group),
            topic=sql.Literal(place.partition.topic),
            partition=sql.Literal(place.partition.number),
            generation=sql.Literal(place.generation),
            expected=sql.Literal(place.next_offset),
        )
        try:
            with signals_held_back():
                session.execute(move)
        except psycopg.errors.DivisionByZero:
            session.execute(b"rollback")
            return Fenced()
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            return self._lost(error)
        except psycopg.Error as error:  # a deferred constraint of the user's, met at the commit
            return self._failed(session, error)
        return Moved(Place(place.partition, next_offset, place.generation))

    def close(self) -> None:
        """Give the connection back."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _connected(self) -> Connection:
        if self._session is None or self._session.closed:
            self._session = connect(self._dsn, Deadline.after(_CONNECT_SECONDS), application="zerotail consume")
        return self._session

    def _failed(self, session: Connection, error: Exception) -> Failed | Lost:
        if session.closed or session.broken:
            return self._lost(error)
        try:
            session.execute(b"rollback")
        except psycopg.Error:
            return self._lost(error)
        return Failed(error)

    def _lost(self, error: Exception) -> Lost:
        self.close()
        return Lost(f"the database at {where(self._dsn)} does not answer: {error}".splitlines()[0])
