"""Epochs in the database: where it stands, a new one, and how far the current one has come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from psycopg.types.json import Jsonb

from zerotail.core.chain import Chain
from zerotail.core.epoch import Cut, Durability, EpochRow, HeadCut, Lineage, Phase, works_at
from zerotail.core.identity import (
    Epoch,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    epoch_of,
    site_number_of,
)
from zerotail.core.installation import UNMARKED, Installation
from zerotail.ports import BeginLife, ChangeEpoch, Done, EndLife, OpenEpoch, PositionRead, Standing
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.installation import require_home, store_installation
from zerotail.postgres.named_locks import hold_database, hold_epoch_row, take_epoch_row
from zerotail.postgres.position import read_position
from zerotail.postgres.promotion import current_timeline
from zerotail.postgres.site import read_numbers, store_numbers
from zerotail.postgres.standstill import take_locks
from zerotail.postgres.transaction import READ_ONLY, Declined, Unverified
from zerotail.postgres.way_in import end_drain

NO_EPOCH = "there is no epoch yet"
NOT_LIVE = "this site is not live"
DRAINS = "this site hands its role over and takes nothing new until that is done"
OTHER_EPOCH = "another epoch is current"
OTHER_TIMELINE = "a replica has taken over since the plan was made"
OTHER_NUMBER = "the epoch has the number of another site"
# One question, because it is asked before everything else: what is asked once comes again beside every epoch.
_STANDING = """
select (select system_identifier from pg_control_system()),
       (select case when pg_is_in_recovery() then null
                    else ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int end),
       (select json_object_agg(rejoined.site, rejoined.epoch) from zerotail.rejoined),
       (select case when pg_is_in_recovery() then null else zerotail.life_in_force()::text end),
       (select identity from zerotail.installation), (select accepts_unmarked from zerotail.installation),
       (select home from zerotail.installation),
       (select oid from pg_database where datname = current_database()), 'zerotail.installation'::regclass::oid,
       epoch, site, timeline, durability, phase, cut::text, cause, operator
  from zerotail.epoch order by epoch
"""
_LIVES = "select pg_advisory_xact_lock(hashtextextended('zerotail: lives', 0))"
_LIFE = """
select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint,
       coalesce(zerotail.life_in_force(true)::text, '')
"""
# From place to place by the index: a plain `group by` would read every instruction there ever was. Whoever gives its
# own serials may have committed a later one first; a cut above the hole would let a lost record pass for the row that
# comes to fill it (E10). What was taken is dense (I4), so only what waits is read.
_SERIALS = b"""
with recursive place (producer, partition) as (
    (select producer, partition from zerotail.instruction order by 1, 2 limit 1)
    union all
    select following.producer, following.partition from place cross join lateral (
        select producer, partition from zerotail.instruction as row
         where (row.producer, row.partition) > (place.producer, place.partition) order by 1, 2 limit 1) as following
), taken (producer, partition, serial) as (
    select place.producer, place.partition, coalesce((head.vector ->> place.producer::text)::bigint, 0)
      from place join zerotail.producer on producer.producer = place.producer
      left join zerotail.head on head.stage = producer.consumer and head.partition = place.partition
)
select producer, partition, coalesce((
           select max(waiting.serial) from (
               select row.serial, row_number() over (order by row.serial) as nth from zerotail.instruction as row
                where row.producer = taken.producer and row.partition = taken.partition and row.serial > taken.serial
                order by row.serial) as waiting
            where waiting.serial = taken.serial + waiting.nth), serial)
  from taken
union all
select producer.producer, (entry ->> 1)::int, (entry ->> 2)::bigint
  from zerotail.producer
  join zerotail.head on head.partition = producer.source_partition
 cross join lateral jsonb_array_elements(head.numbers) as entry
 where producer.channel <> '' and entry ->> 0 = producer.channel
"""


def read_standing(connection: Connection) -> Standing:
    """Where the database stands, in the snapshot of the current transaction, which holds the epoch row from then on."""
    hold_epoch_row(connection)
    rows = connection.execute(_STANDING.encode()).fetchall()
    if not rows:
        raise Declined(NO_EPOCH)
    system, timeline, rejoined, life, identity, accepts_unmarked, home, *place = rows[0][:9]
    require_home(home, system, *place)
    return Standing(
        Lineage(tuple(_epoch_row(row[9:]) for row in rows)),
        None if timeline is None else Timeline(timeline),
        int(system),
        {SiteName(site): Epoch(epoch) for site, epoch in (rejoined or {}).items()},
        life or "",
        UNMARKED if identity is None else Installation(bytes(identity), accepts_unmarked),
    )


def read_verified(connection: Connection) -> Standing:
    """The standing, in a life that is verified; `Unverified` before, for everybody who works with what is there."""
    standing = read_standing(connection)
    if standing.waits_for_life:
        raise Unverified
    return standing


def observe_position(connection: Connection) -> PositionRead:
    """How far the log of this database reaches now."""
    standing = read_standing(connection)
    position = read_position(connection)
    start, nonce = (0, "") if standing.timeline is None else one_row(connection, _LIFE)
    return PositionRead(standing, position, start, nonce)


def is_exposed(connection: Connection) -> bool:
    """Whether the current epoch works without the other site; no where nothing has begun."""
    row = connection.execute(b"select durability from zerotail.epoch order by epoch desc limit 1").fetchone()
    return row is not None and row[0] == Durability.EXPOSED.value


def require_at_work(connection: Connection, site: SiteName) -> Standing:
    """The standing, when `site` is the one that works here; declined otherwise."""
    standing = read_verified(connection)
    if not works_at(standing.lineage, site, standing.timeline):
        raise Declined(NOT_LIVE)
    return standing


def require_own_timeline(connection: Connection) -> Standing:
    """The standing, when the epoch was opened on this very timeline; declined between a promotion and its epoch."""
    standing = read_verified(connection)
    if standing.lineage.current.timeline != standing.timeline:
        raise Declined(OTHER_EPOCH)
    return standing


def require_live(connection: Connection, site: SiteName) -> Standing:
    """The standing, when `site` takes instructions; declined otherwise."""
    standing = require_at_work(connection, site)
    if standing.lineage.current.phase is Phase.DRAINING:
        if not end_drain(connection):
            raise Declined(DRAINS)
        return read_standing(connection)  # whoever drained it is gone, and it has gone back to `live`
    if standing.lineage.current.phase is not Phase.LIVE:
        raise Declined(NOT_LIVE)
    return standing


def has_begun(connection: Connection) -> bool:
    """Whether there is an epoch."""
    return bool(one_row(connection, "select exists (select from zerotail.epoch)")[0])


def open_first_epoch(connection: Connection, site: SiteName, sites: Sequence[SiteName]) -> Epoch | None:
    """Let one of these sites begin as the active one, and number all of them; None when something has begun."""
    with connection.transaction():
        connection.execute(b"lock table zerotail.epoch in exclusive mode")
        if has_begun(connection):
            return None
        epoch = epoch_of(1, store_numbers(connection, sites)[site])
        connection.execute(
            b"insert into zerotail.epoch (epoch, site, timeline, durability, phase) values (%s, %s, %s, %s, %s)",
            (epoch, site, current_timeline(connection), Durability.GATED.value, Phase.LIVE.value),
        )
        store_installation(connection, accepts_unmarked=False)
        write_life(connection)
    return epoch


def begin_life(connection: Connection, effect: BeginLife) -> Done:
    """Say that the life which runs is verified; a second word about it changes nothing."""
    connection.execute(_LIVES.encode())
    standing = read_standing(connection)
    if standing.timeline is None or standing.epoch != effect.epoch:
        raise Declined(OTHER_EPOCH)
    start, nonce = one_row(connection, _LIFE)
    if start != effect.start:
        raise Declined("the server was started anew meanwhile")
    if not nonce:
        write_life(connection, verified=effect.verified)
    elif effect.verified:
        connection.execute(
            b"update zerotail.life set verified_at = clock_timestamp() where nonce = %s::uuid and verified_at is null",
            (nonce,),
        )
    return Done(read_position(connection))


def end_life(connection: Connection, effect: EndLife) -> Done:
    """Begin another life, which nobody has verified, in the place of the one that is in force."""
    connection.execute(_LIVES.encode())
    if not effect.nonce or read_standing(connection).life != effect.nonce:
        raise Declined("another life is in force")
    write_life(connection, verified=False)
    return Done(read_position(connection))


def write_life(connection: Connection, *, verified: bool = True) -> None:
    """Give the life that runs a nonce of its own."""
    connection.execute(_LIVES.encode())
    connection.execute(
        b"insert into zerotail.life (number, verified_at, started_at, system, timeline) "
        b"select coalesce((select max(number) from zerotail.life), 0) + 1, "
        b"case when %s then clock_timestamp() end, pg_postmaster_start_time(), "
        b"system_identifier, ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int "
        b"from pg_control_system()",
        (verified,),
    )


def open_epoch(connection: Connection, effect: OpenEpoch) -> Done:
    """Write the new epoch with the cut, and hand every head over to it, if the current epoch is the expected one."""
    hold_database(connection)
    take_locks(connection, b"lock table zerotail.epoch, zerotail.head, zerotail.lane in exclusive mode")
    standing = read_standing(connection)
    if standing.timeline is None:
        raise Declined(READ_ONLY)
    if standing.epoch != effect.expected:
        raise Declined(OTHER_EPOCH)
    if effect.timeline is not None and effect.timeline != standing.timeline:
        raise Declined(OTHER_TIMELINE)
    if read_numbers(connection).get(effect.site) != site_number_of(effect.epoch):
        raise Declined(OTHER_NUMBER)
    connection.execute(
        b"insert into zerotail.epoch (epoch, site, timeline, durability, phase, cut, cause, operator) "
        b"values (%s, %s, %s, %s, %s, %s, %s, %s)",
        (
            effect.epoch,
            effect.site,
            standing.timeline,
            effect.durability.value,
            Phase.OPENED.value,
            Jsonb(encode_cut(observe_cut(connection))),
            effect.cause,
            effect.operator,
        ),
    )
    connection.execute(b"update zerotail.head set epoch = %s", (effect.epoch,))
    write_life(connection)  # whoever may open an epoch has made sure of the other site, or says that it is out
    return Done(read_position(connection))


def change_epoch(connection: Connection, effect: ChangeEpoch) -> Done:
    """Change phase or durability of the current epoch, if it is still the one that is meant, on its own timeline."""
    if effect.durability is Durability.GATED:
        # Who reads `exposed` lets go without the gate what it wrote, or found. All of that must lie in the log before
        # the row `gated`: a copy that has the row counts as complete (decision 0028).
        take_epoch_row(connection)
    standing = read_standing(connection)
    if standing.timeline is not None and standing.timeline != standing.lineage.current.timeline:
        raise Declined(OTHER_EPOCH)
    changed = connection.execute(
        b"update zerotail.epoch set phase = coalesce(%s, phase), durability = coalesce(%s, durability) "
        b"where epoch = %s and epoch = (select max(epoch) from zerotail.epoch)",
        (
            effect.phase.value if effect.phase else None,
            effect.durability.value if effect.durability else None,
            effect.epoch,
        ),
    )
    if changed.rowcount != 1:
        raise Declined(OTHER_EPOCH)
    return Done(read_position(connection))


def observe_cut(connection: Connection) -> Cut:
    """What there is now: the last serial of every producer and partition, and every head."""
    serials = connection.execute(_SERIALS).fetchall()
    heads = connection.execute(b"select stage, partition, segment, next_position, chain from zerotail.head").fetchall()
    return Cut(
        {(ProducerNumber(p), PartitionNumber(partition)): Serial(serial) for p, partition, serial in serials},
        tuple(
            HeadCut(StageName(stage), PartitionNumber(partition), SegmentNumber(segment), Position(place), Chain(chain))
            for stage, partition, segment, place, chain in heads
        ),
    )


def encode_cut(cut: Cut) -> dict[str, Any]:
    """A cut as it is stored."""
    return {
        "serials": [[producer, partition, serial] for (producer, partition), serial in sorted(cut.serials.items())],
        "heads": [
            [head.stage, head.partition, head.segment, head.next_position, head.chain.hex()] for head in cut.heads
        ],
    }


@lru_cache(maxsize=1024)
def _decode_cut(text: str) -> Cut:
    """A cut is written once; everybody who looks at the epochs, many times a second, meets the same few again."""
    stored = json.loads(text)
    return Cut(
        {
            (ProducerNumber(producer), PartitionNumber(partition)): Serial(serial)
            for producer, partition, serial in stored.get("serials", [])
        },
        tuple(
            HeadCut(
                StageName(stage),
                PartitionNumber(partition),
                SegmentNumber(segment),
                Position(place),
                Chain(bytes.fromhex(chain)),
            )
            for stage, partition, segment, place, chain in stored.get("heads", [])
        ),
    )


def _epoch_row(row: tuple[Any, ...]) -> EpochRow:
    epoch, site, timeline, durability, phase, cut, cause, operator = row
    return EpochRow(
        Epoch(epoch),
        SiteName(site),
        Timeline(timeline),
        Durability(durability),
        Phase(phase),
        _decode_cut(cut),
        cause,
        operator,
    )
