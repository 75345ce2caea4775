"""Messages into a database outside, with their numbers in the transaction of the effect.

Whoever claims or sends locks the lane's receipt first, so two senders of one lane take turns, and each sees what the
other one has done.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NewType, TypeVar

import psycopg
from psycopg import sql

from zerotail import errors
from zerotail.core.emission import Lane
from zerotail.core.identity import EmissionNumber, Epoch
from zerotail.core.receiver import Welcome, find_unseen
from zerotail.errors import first_line
from zerotail.ports import (
    Accepted,
    ClaimAtReceiver,
    Indefinite,
    OtherInstallation,
    OutOfOrder,
    Refused,
    SendEmissions,
    Superseded,
    Unreachable,
)
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.transaction import Session, Work

T = TypeVar("T")
Effect = NewType("Effect", bytes)
"""A statement that carries one message out: `channel`, `partition`, `number`, `possible_duplicate`, `exposed`,
`installation` and `value` by name.
"""

_LANE = "channel = %s and partition = %s and target = %s"
_OWNER = "to_jsonb(zerotail_receipt) ->> 'installation'"
"""Whose receipt it is; null in a table of before, which has no such column and tells no installations apart."""
_CLAIMED = f"select claim_epoch from zerotail_receipt where {_LANE} and coalesce({_OWNER}, %s) = %s"
_INSERT = """
insert into {table} (channel, partition, number, possible_duplicate, value)
values (%(channel)s, %(partition)s, %(number)s, %(possible_duplicate)s, %(value)s)
"""
_INSERT_NAMED = """
insert into {table} (channel, partition, number, possible_duplicate, value, installation)
values (%(channel)s, %(partition)s, %(number)s, %(possible_duplicate)s, %(value)s, %(installation)s)
"""
_HAS_INSTALLATION = """
select exists (select from pg_attribute
                where attrelid = to_regclass(%s) and attname = 'installation' and not attisdropped)
"""


def receiver_schema() -> str:
    """What the receiver's DBA runs once."""
    return files("zerotail.postgres").joinpath("receipt.sql").read_text()


def insert_into(table: str, *, drop_repeats: bool, named: bool = False) -> Effect:
    """The effect that stores a message as a row; with `drop_repeats` its unique key makes it R1, with `named` the row
    says of which installation it is.
    """
    statement = (_INSERT_NAMED if named else _INSERT) + ("on conflict do nothing" if drop_repeats else "")
    return Effect(sql.SQL(statement).format(table=sql.Identifier(*table.split("."))).as_bytes())


def write(session: Session, work: Work[T]) -> T | Unreachable | Indefinite | Refused:
    """Carry out `work` in a database that is not ours: whatever it declines did not happen, and is no fault of ours."""
    try:
        answer = session.write(work)
    except errors.Refused as error:  # a right that is missing, or its row security
        return Refused(error.message)
    except psycopg.DatabaseError as error:
        return Refused(f"the receiver's database declined: {first_line(error)}")
    if isinstance(answer, Unreachable | Indefinite) and session.lost is not None:
        return type(answer)(session.lost.message)
    return answer


def has_installation(connection: Connection, table: str) -> bool:
    """Whether a table can say of which installation a row is."""
    return bool(one_row(connection, _HAS_INSTALLATION, (table,))[0])


def claim(connection: Connection, effect: ClaimAtReceiver) -> Welcome | Superseded | OtherInstallation:
    """Enter the sender in the lane's receipt, unless a newer one stands there, or one of another installation."""
    connection.execute(
        b"insert into zerotail_receipt values (%s, %s, %s, 0, 0, 0, 0) on conflict do nothing", (*effect.lane,)
    )
    number, epoch, owner, *newest = _lock(connection, effect.lane) or (0, 0, None, 0, 0)
    if newest[0] and owner not in (None, effect.installation):
        return OtherInstallation(owner)
    if newest > [effect.epoch, effect.incarnation]:
        return Superseded(Epoch(newest[0]))
    connection.execute(
        f"update zerotail_receipt set claim_epoch = %s, incarnation = %s where {_LANE}".encode(),
        (effect.epoch, effect.incarnation, *effect.lane),
    )
    if owner != effect.installation and owner is not None:
        connection.execute(
            f"update zerotail_receipt set installation = %s where {_LANE}".encode(), (effect.installation, *effect.lane)
        )
    return Welcome(EmissionNumber(number), Epoch(epoch) if epoch else None)


def ask_receipts(dsn: str, lanes: Sequence[Lane], installation: str, seconds: float) -> list[Epoch | None]:
    """In which epochs an installation claimed lanes last, by the receipts of a database outside; nothing is entered."""

    def look(connection: Connection) -> list[Epoch | None]:
        rows = [connection.execute(_CLAIMED.encode(), (*lane, installation, installation)).fetchone() for lane in lanes]
        return [None if row is None else Epoch(row[0]) for row in rows]

    session = Session(dsn, patience_seconds=seconds, connect_seconds=seconds)
    try:
        found = session.read(look)
    except psycopg.DatabaseError:
        return []
    finally:
        session.close()
    return found if isinstance(found, list) else []


def take_in_order(
    connection: Connection, effect: SendEmissions, carry_out: Effect
) -> Accepted | Superseded | OtherInstallation | OutOfOrder:
    """The effects behind the last number, and the new last number, as one."""
    receipt = _lock(connection, effect.lane)
    if receipt is None:
        return OutOfOrder(EmissionNumber(0))  # nobody has claimed it: the receipt is not there, or not any more
    number, _, owner, *newest = receipt
    if owner not in (None, effect.installation):
        return OtherInstallation(owner)
    if newest > [effect.epoch, effect.incarnation]:
        return Superseded(Epoch(newest[0]))
    missing = find_unseen(EmissionNumber(number), effect.first, effect.values)
    if missing is None:
        return OutOfOrder(EmissionNumber(number))
    if not missing:
        return Accepted(EmissionNumber(number))
    last = effect.last
    _carry_out(connection, effect, EmissionNumber(last - len(missing) + 1), missing, carry_out)
    connection.execute(
        f"update zerotail_receipt set number = %s, epoch = %s where {_LANE}".encode(),
        (last, effect.epoch, *effect.lane),
    )
    return Accepted(last)


def take(connection: Connection, effect: SendEmissions, carry_out: Effect) -> Accepted:
    """The effects, whatever was taken before: the statement itself drops repeats."""
    _carry_out(connection, effect, effect.first, effect.values, carry_out)
    return Accepted(effect.last)


def _lock(connection: Connection, lane: Lane) -> tuple[Any, ...] | None:
    query = f"select number, epoch, {_OWNER}, claim_epoch, incarnation from zerotail_receipt where {_LANE} for update"
    return connection.execute(query.encode(), lane).fetchone()


def _carry_out(
    connection: Connection, effect: SendEmissions, first: EmissionNumber, values: Sequence[bytes], carry_out: Effect
) -> None:
    rows = [
        {
            "channel": effect.lane.channel,
            "partition": effect.lane.partition,
            "number": number,
            "possible_duplicate": number <= effect.doubtful_until,
            "exposed": effect.exposed,
            "value": value,
            "installation": effect.installation,
        }
        for number, value in enumerate(values, first)
    ]
    with connection.cursor() as cursor:
        cursor.executemany(carry_out, rows)
