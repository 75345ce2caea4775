"""Apply the handler to records whose order is decided: the same code in a stage, in a replay and in the simulation.

1. `open_order` makes sure that each value is the one that its digest names, reads the values, asks the handler for its
   state keys and carries out what operators decided about single records (`core/poison.py`).
2. `apply_opened` runs the handler in order and gives the head behind the records, with everything that the journal
   stores.

Both stop at the first record that cannot be read or at which the handler fails, with `SpoiledError`; nothing in front
of it depends on it, so the caller goes on with the records before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zerotail.core import head as heads
from zerotail.core.emission import LaneKey, Owed, number_emissions
from zerotail.core.head import Head, Hint, Segment
from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.core.poison import Decided, Decision, RecordName, Remedy
from zerotail.core.record import digest_of, digests_of
from zerotail.handler import NOT_ITS_OWN, FailedError, Handler, Record, State, apply_in_order, decode_value, describe
from zerotail.ports import Batch


class SpoiledError(Exception):
    """The record at `place` cannot be taken, for the reason that the text says."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place


class Rule(Protocol):
    """What a stage applies, and where its messages go."""

    @property
    def handler(self) -> Handler:
        """The user's handler."""
        ...

    def partitions_of(self, channel: str) -> int:
        """How many target partitions a channel has."""
        ...


@dataclass(frozen=True, slots=True)
class Order:
    """Records by column, in the order in which a stage takes them."""

    producers: Sequence[ProducerNumber]
    serials: Sequence[Serial]
    digests: Sequence[bytes]
    values: Sequence[bytes]
    decided: Sequence[Decided] = ()

    def __len__(self) -> int:
        return len(self.serials)

    def until(self, place: int) -> Order:
        """The records in front of a place."""
        decided = tuple((at, decision) for at, decision in self.decided if at < place)
        return Order(self.producers[:place], self.serials[:place], self.digests[:place], self.values[:place], decided)


@dataclass(frozen=True, slots=True)
class Opened:
    """Records as the handler sees them, each with the state keys that it named."""

    order: Order
    records: Sequence[Record]
    keys: Sequence[Sequence[str]]
    needed: Sequence[str]
    """Every key, once."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of it: everything that one transaction stores."""

    head: Head
    segment: Segment
    state: Mapping[str, bytes | None]
    owed: Owed


def order_of(batch: Batch, accepted: Sequence[int], decisions: Mapping[RecordName, Decision]) -> Order:
    """The accepted records of a batch, with the decisions that are bound to them (I22)."""
    if len(accepted) == len(batch.serials):
        order = Order(batch.producers, batch.serials, batch.digests, batch.values)
    else:
        order = Order(
            [batch.producers[index] for index in accepted],
            [batch.serials[index] for index in accepted],
            [batch.digests[index] for index in accepted],
            [batch.values[index] for index in accepted],
        )
    if not decisions:
        return order
    decided = [
        (place, decision)
        for place, name in enumerate(zip(order.producers, order.serials, strict=True))
        if (decision := decisions.get(name)) is not None and decision.digest == order.digests[place]
    ]
    return Order(order.producers, order.serials, order.digests, order.values, decided)


def open_order(handler: Handler, first: Position, order: Order) -> Opened:
    """Read the values and ask for the keys."""
    _require_own_values(order)
    skipped: set[int] = set()
    values = order.values
    if order.decided:
        changed = list(values)
        for place, decision in order.decided:
            if decision.remedy is Remedy.SKIP:
                skipped.add(place)
            else:
                changed[place] = decision.value
        values = changed
    records: list[Record] = []
    keys: list[Sequence[str]] = []
    place = 0
    try:
        columns = zip(order.producers, order.serials, values, strict=True)
        for place, (producer, serial, value) in enumerate(columns):
            if place in skipped:
                continue
            record = Record(producer, serial, Position(first + place), decode_value(value))
            keys.append(handler.keys(record))
            records.append(record)
    except NOT_ITS_OWN:
        raise
    except BaseException as error:
        raise SpoiledError(place, describe(error)) from error
    return Opened(order, records, keys, _needed(first, records, keys))


def _require_own_values(order: Order) -> None:
    """`SpoiledError` at the first value that is not the one its digest names: what is applied is what the row holds.

    The digest came from the row. Bytes that changed on their way, or that somebody put under a header of ours, would
    be journaled as something they are not. Where an operator has decided, the value is not applied, so it is not asked.
    """
    try:
        if digests_of(order.values) == b"".join(order.digests):
            return
    except TypeError:
        pass  # a record without a value among them
    decided = {place for place, _ in order.decided}
    for place, (value, digest) in enumerate(zip(order.values, order.digests, strict=True)):
        if place not in decided and digest_of(value) != digest:
            found = digest_of(value).hex()
            raise SpoiledError(place, f"its value is not the one that was sent: digest {found}, not {digest.hex()}")


def _needed(first: Position, records: Sequence[Record], keys: Sequence[Sequence[str]]) -> list[str]:
    """Every key, once; `SpoiledError` when one of them is no text that a database can hold."""
    try:
        if str in set(map(type, keys)):
            raise TypeError  # noqa: TRY301 - one text: each of its letters would pass for a key
        needed = sorted({key for some in keys for key in some})
        _require_texts(needed)
    except (TypeError, ValueError):
        for record, some in zip(records, keys, strict=True):
            try:
                _require_texts(some)
            except (TypeError, ValueError) as error:
                reason = f"keys() gave something that is no state key: {describe(error)}"
                raise SpoiledError(record.position - first, reason) from error
        raise
    return needed


def _require_texts(keys: Sequence[str] | str) -> None:
    if isinstance(keys, str):
        raise TypeError(f"the text {keys!r}, and not a list of texts")
    if b"\0" in "".join(keys).encode():
        raise ValueError("a key holds a zero byte")


def apply_opened(
    rule: Rule,
    head: Head,
    opened: Opened,
    stored: Mapping[str, bytes],
    decided_at: int,
    version: str,
    hint: Hint | None,
) -> Applied:
    """Run the handler over opened records behind a head."""
    try:
        said, changes = _run(rule, head, opened, stored, decided_at)
    except FailedError as failed:
        place = opened.records[failed.place].position - head.next_position
        raise SpoiledError(place, str(failed)) from failed
    owed = number_emissions(head.numbers, said)
    order = opened.order
    moved, segment = heads.advance(
        head,
        producers=order.producers,
        serials=order.serials,
        digests=order.digests,
        decided_at=decided_at,
        version=version,
        owed=owed,
        hint=hint,
        decided=order.decided,
    )
    return Applied(moved, segment, changes, owed)


def _run(
    rule: Rule, head: Head, opened: Opened, stored: Mapping[str, bytes], decided_at: int
) -> tuple[dict[LaneKey, list[bytes]], dict[str, bytes | None]]:
    """What the handler says and what it changes; `FailedError` also where it leaves a state that cannot be stored."""

    def until(count: int) -> tuple[dict[LaneKey, list[bytes]], State]:
        state = State(stored)
        records, keys = opened.records[:count], opened.keys[:count]
        return apply_in_order(rule.handler, records, state, keys, decided_at, head.chain, rule.partitions_of), state

    said, state = until(len(opened.records))
    try:
        return said, state.changes()
    except Exception as error:
        # Behind `sound` records the state can be stored, behind `spoiled` it cannot: the one between them did it.
        sound, spoiled = 0, len(opened.records)
        while spoiled - sound > 1:
            middle = (sound + spoiled) // 2
            try:
                until(middle)[1].changes()
                sound = middle
            except FailedError:
                raise
            except Exception:  # noqa: BLE001 - whatever the values of somebody's state raise when they are encoded
                spoiled = middle
        raise FailedError(spoiled - 1, f"the state cannot be stored: {describe(error)}") from error
