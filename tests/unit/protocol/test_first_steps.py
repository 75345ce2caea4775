"""The head in front of everything, heads handed over, runs, and the bytes that the chain is made of."""

from __future__ import annotations

from hashlib import blake2b, sha256

import pytest

from zerotail.core.chain import GENESIS, input_content
from zerotail.core.head import first_head, runs_of
from zerotail.core.identity import Epoch, Position, ProducerNumber, SegmentNumber, Serial
from zerotail.core.record import digest_of

pytestmark = pytest.mark.fast

ONE, TWO = ProducerNumber(1), ProducerNumber(2)


def test_the_first_head_has_taken_nothing() -> None:
    head = first_head(Epoch(256), [ONE, TWO])
    assert head.vector == {ONE: 0, TWO: 0}
    assert (head.segment, head.next_position, head.decided_at, head.numbers) == (0, 0, 0, {})
    assert head.chain == head.output_chain == GENESIS


def test_a_head_that_is_handed_over_changes_its_epoch_and_nothing_else() -> None:
    head = first_head(Epoch(256), [ONE])
    moved = head.in_epoch(Epoch(513))
    assert moved.epoch == 513
    assert moved.in_epoch(Epoch(256)) == head


def test_runs_are_consecutive_serials_of_one_producer() -> None:
    owners = [ONE, ONE, TWO, ONE, ONE, TWO, TWO]
    serials = [Serial(number) for number in (4, 5, 1, 6, 8, 2, 3)]
    assert runs_of(owners, serials) == ((1, 4, 2), (2, 1, 1), (1, 6, 1), (1, 8, 1), (2, 2, 2))
    with pytest.raises(ValueError, match="zip"):
        runs_of([ONE], [])


def test_the_chain_covers_exactly_these_bytes() -> None:
    runs = [(ONE, Serial(4), 2), (TWO, Serial(1), 1)]
    digests = [digest_of(value) for value in (b"a", b"b", b"c")]
    numbers = b"".join(number.to_bytes(8, "little") for number in (256, 7, 40, 99))
    laid_out = numbers + (2).to_bytes(2, "little") + b"v1"
    for producer, serial, count in runs:
        laid_out += producer.to_bytes(4, "little") + serial.to_bytes(8, "little") + count.to_bytes(4, "little")
    laid_out += b"".join(digests)
    content = input_content(Epoch(256), SegmentNumber(7), Position(40), 99, "v1", runs, digests)
    assert content == sha256(laid_out).digest()
    assert digest_of(b"a") == blake2b(b"a", digest_size=8).digest()
