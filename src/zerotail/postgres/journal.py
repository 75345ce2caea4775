"""The order journal as it is written: heads, segments, and the state that goes with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from psycopg.types.json import Jsonb

from zerotail.core.chain import Chain
from zerotail.core.emission import LaneKey, pack_messages
from zerotail.core.head import Head, Hint, first_head
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Offset,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
)
from zerotail.ports import ClaimHead, Commit, Done, HeadRead, LoadState, ReadHead, StateLoaded
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.lineage import OTHER_EPOCH, read_standing, read_verified, require_at_work
from zerotail.postgres.poison import read_poison
from zerotail.postgres.position import read_position
from zerotail.postgres.segment import insert_segment
from zerotail.postgres.transaction import Declined

_HEAD = (
    "select epoch, segment, next_position, vector, numbers, chain, output_chain, decided_at, hint_log, hint_offset, "
    "claim from zerotail.head where stage = %s and partition = %s"
)
_REGISTERED = "select producer from zerotail.producer where consumer = %s"
_MOVE_HEAD = """
update zerotail.head
   set segment = %s, next_position = %s, vector = %s, numbers = %s, chain = %s, output_chain = %s, decided_at = %s,
       hint_log = %s, hint_offset = %s
 where stage = %s and partition = %s and epoch = %s and segment = %s and chain = %s and claim = %s
"""
_INSERT_OUTBOX = (
    "insert into zerotail.outbox (channel, partition, target, first_number, count, messages, segment) "
    "values (%s, %s, %s, %s, %s, %s, %s)"
)
_STORE_STATE = """
insert into zerotail.state (stage, partition, key, value)
select %s, %s, changed.key, changed.value from unnest(%s::text[], %s::bytea[]) as changed (key, value)
on conflict (stage, partition, key) do update set value = excluded.value
"""


def create_head(
    connection: Connection, stage: StageName, partition: PartitionNumber, producers: Sequence[ProducerNumber]
) -> None:
    """The head in front of the first segment; one that is there already stays as it is."""
    head = first_head(read_standing(connection).epoch, producers)
    connection.execute(
        b"insert into zerotail.head (stage, partition, epoch, segment, next_position, vector, numbers, chain, "
        b"output_chain, decided_at) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict do nothing",
        (
            stage,
            partition,
            head.epoch,
            head.segment,
            head.next_position,
            Jsonb(_encode_vector(head.vector)),
            Jsonb([]),
            head.chain,
            head.output_chain,
            head.decided_at,
        ),
    )


def find_head(connection: Connection, stage: StageName, partition: PartitionNumber) -> Head | None:
    """The head of a stage and partition, in the snapshot of the current transaction."""
    row = connection.execute(_HEAD.encode(), (stage, partition)).fetchone()
    return None if row is None else _decode_head(row)


def read_head(connection: Connection, effect: ReadHead | ClaimHead) -> HeadRead:
    """The head, and where its database stands."""
    head = find_head(connection, effect.stage, effect.partition)
    if head is None:
        raise Declined(f"stage {effect.stage} has no partition {effect.partition} here")
    known = connection.execute(
        b"select producer from zerotail.producer where consumer = %s", (effect.stage,)
    ).fetchall()
    head = replace(head, vector={ProducerNumber(number): Serial(0) for (number,) in known} | dict(head.vector))
    decisions, stopped = read_poison(connection, effect.stage, effect.partition, head)
    return HeadRead(read_verified(connection), head, decisions, stopped)


def claim_head(connection: Connection, effect: ClaimHead, site: SiteName) -> HeadRead:
    """Count the claim up: whoever was at work on this head before is refused from now on."""
    require_at_work(connection, site)
    connection.execute(
        b"update zerotail.head set claim = claim + 1 where stage = %s and partition = %s",
        (effect.stage, effect.partition),
    )
    return read_head(connection, effect)


def load_state(connection: Connection, effect: LoadState) -> StateLoaded:
    """The values of many keys at once, and the time here."""
    (clock,) = one_row(connection, "select (extract(epoch from clock_timestamp()) * 1e6)::bigint")
    rows = connection.execute(
        b"select key, value from zerotail.state where stage = %s and partition = %s and key = any(%s)",
        (effect.stage, effect.partition, list(effect.keys)),
        binary=True,
    ).fetchall()
    return StateLoaded(dict(rows), int(clock))


def read_state(connection: Connection, stage: StageName, partition: PartitionNumber) -> dict[str, bytes]:
    """The whole state of a stage and partition."""
    rows = connection.execute(
        b"select key, value from zerotail.state where stage = %s and partition = %s", (stage, partition), binary=True
    ).fetchall()
    return dict(rows)


def commit_batch(connection: Connection, effect: Commit) -> Done:
    """One micro-batch: order, state and emissions, if the head is still the expected one (I2, I3, I6)."""
    # 1. The compare-and-set comes first: whoever is too late learns it before anything is written.
    head, expected = effect.head, effect.expected
    place = (effect.stage, effect.partition)
    moved = connection.execute(
        _MOVE_HEAD.encode(),
        (
            head.segment,
            head.next_position,
            Jsonb(_encode_vector(head.vector)),
            Jsonb(_encode_numbers(head.numbers)),
            head.chain,
            head.output_chain,
            head.decided_at,
            head.hint.log if head.hint else None,
            head.hint.offset if head.hint else None,
            *place,
            expected.epoch,
            expected.segment,
            expected.chain,
            expected.claim,
        ),
    )
    if moved.rowcount != 1:
        raise Declined("the head has moved")
    # 2. Between a promotion and the new epoch nobody writes: the epoch's timeline must be the database's own.
    if read_verified(connection).timeline != effect.timeline:
        raise Declined(OTHER_EPOCH)
    # 3. Order, state, emissions.
    insert_segment(connection, effect.stage, effect.partition, effect.segment)
    store_state(connection, place, effect.state)
    rows = [
        (channel, effect.partition, target, first, len(values), pack_messages(values), head.segment)
        for (channel, target), (first, values) in effect.outbox.items()
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT_OUTBOX.encode(), rows)
    return Done(read_position(connection))


def store_state(connection: Connection, place: tuple[Any, ...], changes: Mapping[str, bytes | None]) -> None:
    """Write what changed in the state of a stage and partition; None removes a key."""
    kept = [(key, value) for key, value in changes.items() if value is not None]
    gone = [key for key, value in changes.items() if value is None]
    if kept:
        connection.execute(_STORE_STATE.encode(), (*place, [key for key, _ in kept], [value for _, value in kept]))
    if gone:
        connection.execute(
            b"delete from zerotail.state where stage = %s and partition = %s and key = any(%s)", (*place, gone)
        )


def _decode_head(row: tuple[Any, ...]) -> Head:
    epoch, segment, position, vector, numbers, chain, output_chain, decided_at, log, offset, claim = row
    return Head(
        Epoch(epoch),
        SegmentNumber(segment),
        Position(position),
        {ProducerNumber(int(producer)): Serial(serial) for producer, serial in vector.items()},
        {(ChannelName(c), PartitionNumber(target)): EmissionNumber(number) for c, target, number in numbers},
        Chain(chain),
        Chain(output_chain),
        decided_at,
        None if log is None else Hint(log, Offset(offset)),
        claim,
    )


def _encode_vector(vector: Mapping[ProducerNumber, Serial]) -> dict[str, int]:
    return {str(producer): serial for producer, serial in vector.items()}


def _encode_numbers(numbers: Mapping[LaneKey, EmissionNumber]) -> list[list[Any]]:
    return [[channel, target, number] for (channel, target), number in sorted(numbers.items())]
