"""What the receiver knows, against a plain dictionary that knows the same."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.lab.receiver.ledger import Digests, Ledger
from zerotail.lab.receiver.protocol import MessageAttempt, ReceiverClass, Verdict

pytestmark = pytest.mark.fast


def digest_of(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


@given(st.lists(st.integers(1, 40), unique=True))
def test_digests_are_found_whatever_the_order_in_which_numbers_came(numbers: list[int]) -> None:
    digests = Digests()
    for number in numbers:
        digests.add(number, digest_of(number))
    for number in range(1, 45):
        assert (number in digests) is (number in numbers)
        assert digests.find(number) == (digest_of(number) if number in numbers else None)
    assert len(digests) == len(numbers)
    assert digests.highest == max(numbers, default=0)


def test_numbers_that_arrive_backwards_are_packed_in_the_end() -> None:
    digests = Digests()
    for number in range(1000, 0, -1):
        digests.add(number, digest_of(number))
    assert not digests._ahead
    assert [digests.find(number) for number in (1, 500, 1000)] == [
        digest_of(1),
        digest_of(500),
        digest_of(1000),
    ]


def attempt(sequence: int, number: int, verdict: Verdict, same_bytes: bool | None) -> MessageAttempt:
    return MessageAttempt(
        sequence=sequence,
        channel="bank",
        partition=0,
        number=number,
        epoch=257,
        incarnation=1,
        site="east",
        possible_duplicate=False,
        digest=digest_of(number).hex(),
        size_bytes=1,
        unix_seconds=0.0,
        receiver_class=ReceiverClass.R3,
        verdict=verdict,
        same_bytes=same_bytes,
    )


@given(st.lists(st.tuples(st.integers(1, 8), st.sampled_from(Verdict))))
def test_totals_count_every_attempt_once(history: list[tuple[int, Verdict]]) -> None:
    ledger = Ledger()
    for sequence, (number, verdict) in enumerate(history, 1):
        same = ledger.book("bank", 0).has_same_bytes(number, digest_of(number))
        # A dropped repeat is the only attempt that leaves nothing behind: what it repeats is known already.
        seen = {earlier for earlier, before in history[: sequence - 1] if before is not Verdict.REPEAT_DROPPED}
        assert same is (True if number in seen else None)
        ledger.remember(attempt(sequence, number, verdict, same))
    totals = ledger.totals("bank", 0, ReceiverClass.R3)
    accepted = [number for number, verdict in history if verdict is Verdict.ACCEPTED]
    assert totals.accepted == len(accepted)
    assert totals.distinct == len(set(accepted))
    assert totals.repeats_accepted == len(accepted) - len(set(accepted))
    assert totals.highest == max(accepted, default=0)
    assert totals.missing == totals.highest - totals.distinct
    assert totals.out_of_order == sum(
        number < max(accepted[:index], default=0) for index, number in enumerate(accepted)
    )
    refused = totals.gaps_refused + totals.older_epochs_refused + totals.behind_refused
    refused += totals.other_installations_refused
    assert totals.accepted + totals.repeats_dropped + refused == len(history)
    assert ledger.end_sequence == len(history)
