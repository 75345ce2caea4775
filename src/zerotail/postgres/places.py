"""Places of a consumer in PostgreSQL, in the database that takes the results.

The place is moved in the same message that commits: between the comparison and the commit there is no moment in which
a frozen client could hold the place and keep its successor waiting. A comparison that fails is an error of its own,
which the server meets before it gets to the commit.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from psycopg import sql

from zerotail.consume.places import Failed, Fenced, Lost, Moved, Partition, Place
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
    primary key (consumer_group, topic, partition)
)
"""
_CLAIM = """
insert into zerotail_place as known (consumer_group, topic, partition, generation) values (%s, %s, %s, 1)
on conflict (consumer_group, topic, partition) do update set generation = known.generation + 1
returning next_offset, generation
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

    def claim(self, group: str, partition: Partition) -> Place | Lost:
        """Become the one who works on a partition for a group."""
        try:
            row = self._connected().execute(_CLAIM.encode(), (group, partition.topic, partition.number)).fetchone()
        except (Unavailable, psycopg.OperationalError, psycopg.InterfaceError) as error:
            return self._lost(error)
        assert row is not None  # noqa: S101 - an upsert answers with its row
        return Place(partition, row[0], row[1])

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
