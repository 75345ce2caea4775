"""Entries of a spool become instructions: many in one transaction, each once, in the order of the spool.

The identifier decides. An entry whose identifier is an instruction of the producer already was stored before and its
removal from the spool was not noted: it is passed over, and no serial is used up. Rows that were numbered are found in
the same place, so it does not matter when the repeat comes. An identifier that is known with *other* bytes is another
instruction under a used name, and one for a partition that no stage has, or of a value that no record can hold (older
versions put it into a spool), would never be taken: such entries are set aside, as rows of SQL are, and named, since
the caller keeps them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from psycopg import DataError, IntegrityError

from zerotail.core.identity import Lsn, PartitionNumber, ProducerNumber, SiteName
from zerotail.core.intake import too_large
from zerotail.ports import Result, Standing
from zerotail.postgres.connection import Connection
from zerotail.postgres.feed import next_serial, partitions_of
from zerotail.postgres.lineage import require_live
from zerotail.postgres.position import read_position
from zerotail.postgres.registration import find_numbers
from zerotail.postgres.transaction import Declined

# What is known is asked row by row, as in `feed.py`.
_INSERT = """
with offered as (
    select id, value, place from unnest(%s::text[], %s::bytea[]) with ordinality as offered (id, value, place)
), unheard as (
    select distinct on (id) id, value, place from offered
     where (select true from zerotail.instruction as known where known.producer = %s and known.id = offered.id) is null
     order by id, place
)
insert into zerotail.instruction (producer, partition, serial, id, value)
select %s, %s, %s - 1 + row_number() over (order by place), id, value from unheard
"""
_DIFFERENT = """
select offered.place - 1 from unnest(%s::text[], %s::bytea[], %s::integer[]) with ordinality
       as offered (id, value, partition, place)
  cross join lateral (select value, partition from zerotail.instruction
                       where producer = %s and id = offered.id limit 1) as known
 where known.value <> offered.value or known.partition <> offered.partition
 order by 1
"""
# Brought again, it is found: whoever drains may not have heard the answer.
_SET_ASIDE = """
insert into zerotail.set_aside (producer, partition, id, value, submitted_at, reason)
select %(producer)s, %(partition)s, %(id)s, %(value)s, clock_timestamp(), %(reason)s
 where not exists (select from zerotail.set_aside as known
                    where known.producer = %(producer)s and known.id = %(id)s
                      and known.partition = %(partition)s and known.value = %(value)s)
"""
_USED = "its identifier belongs to another instruction"


class SpooledRow(NamedTuple):
    """An entry on its way to become an instruction."""

    id: str
    partition: int
    value: bytes


class Stored(Result, frozen=True):
    """All of them are instructions, but for those that were refused."""

    standing: Standing
    new: int
    """How many were not there before."""
    refused: tuple[int, ...]
    """Which of the rows can never be stored, by their place: their identifier belongs to other bytes, no stage has
    their partition, or they are too large.
    """
    position: Lsn


def store_rows(connection: Connection, site: SiteName, producer: str, rows: Sequence[SpooledRow]) -> Stored:
    """Store what is not there yet; declined at a site that does not take instructions."""
    standing = require_live(connection, site)
    number = find_numbers(connection, [producer]).get(producer)
    if number is None:
        raise Declined(f"the database knows no producer {producer}; `zerotail run` registers it")
    known = partitions_of(connection, number)
    unfit = {
        place: too_large(len(row.value)) or f"no stage has partition {row.partition}"
        for place, row in enumerate(rows)
        if row.partition not in known or too_large(len(row.value))
    }
    fitting = [row for place, row in enumerate(rows) if place not in unfit]
    wanted = sorted({row.partition for row in fitting})
    try:
        new = sum(_insert(connection, number, partition, fitting) for partition in wanted)
    except (IntegrityError, DataError) as error:
        # Another session stored one of the identifiers meanwhile; the next look finds it.
        raise Declined(f"the rows were not taken: {error}") from error
    refused = dict.fromkeys(_different(connection, number, rows), _USED) | unfit
    for place, reason in refused.items():
        named = {"producer": number, "reason": f"{reason} (from a spool)", **rows[place]._asdict()}
        connection.execute(_SET_ASIDE.encode(), named)
    return Stored(standing, new, tuple(sorted(refused)), read_position(connection))


def _insert(connection: Connection, producer: ProducerNumber, partition: int, rows: Sequence[SpooledRow]) -> int:
    mine = [row for row in rows if row.partition == partition]
    # Taken in the order of the partitions, by everybody who takes more than one.
    first = next_serial(connection, producer, PartitionNumber(partition))
    ids, values = [row.id for row in mine], [row.value for row in mine]
    return connection.execute(_INSERT.encode(), (ids, values, producer, producer, partition, first)).rowcount


def _different(connection: Connection, producer: ProducerNumber, rows: Sequence[SpooledRow]) -> tuple[int, ...]:
    columns = ([row.id for row in rows], [row.value for row in rows], [row.partition for row in rows])
    found = connection.execute(_DIFFERENT.encode(), (*columns, producer)).fetchall()
    return tuple(place for (place,) in found)
