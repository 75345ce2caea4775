"""A value is applied only under its own digest."""

from __future__ import annotations

import pytest

from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.core.poison import Decision, Remedy
from zerotail.core.record import digest_of
from zerotail.flow.apply import Order, SpoiledError, open_order
from zerotail.handler import Emission, Given, Record, State

pytestmark = pytest.mark.fast

VALUES = [b'{"amount": 1}', b'{"amount": 2}', b'{"amount": 3}']
DIGESTS = [digest_of(value) for value in VALUES]
ONE = ProducerNumber(1)


class Counting:
    """A handler that takes everything."""

    def keys(self, record: Record) -> list[str]:
        return [f"key {record.serial}"]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        return []


def order(values: list[bytes | None], *decided: tuple[int, Decision]) -> Order:
    serials = [Serial(number) for number in (1, 2, 3)]
    return Order([ONE] * 3, serials, DIGESTS, values, decided)  # type: ignore[arg-type]


def opened(of: Order) -> list[int]:
    return [record.serial for record in open_order(Counting(), Position(1), of).records]


def test_values_under_their_own_digests_are_opened() -> None:
    assert opened(order([*VALUES])) == [1, 2, 3]


@pytest.mark.parametrize("other", [b'{"amount": 1000}', b"", None])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_first_value_under_another_digest_is_named(place: int, other: bytes | None) -> None:
    values: list[bytes | None] = [*VALUES]
    values[place:] = [other] * (3 - place)
    with pytest.raises(SpoiledError, match=f"digest {digest_of(other).hex()}, not {DIGESTS[place].hex()}") as spoiled:
        opened(order(values))
    assert spoiled.value.place == place


def test_what_was_decided_about_is_not_asked() -> None:
    skipped = Decision(Remedy.SKIP, DIGESTS[1])
    assert opened(order([VALUES[0], b"other", VALUES[2]], (1, skipped))) == [1, 3]
    replaced = Decision(Remedy.REPLACE, DIGESTS[1], b'{"amount": 20}')
    assert opened(order([VALUES[0], b"other", VALUES[2]], (1, replaced))) == [1, 2, 3]
