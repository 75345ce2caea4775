"""Payments are a function of seed and number, skewed as accounts of a business are, each account in one partition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from zerotail.handler import Emission
from zerotail.lab.payments import Drawn, Payments, account_name, partition_of

pytestmark = pytest.mark.fast


def same(one: Drawn, other: Drawn) -> bool:
    return all(np.array_equal(mine, yours) for mine, yours in zip(one, other, strict=True))


def joined(*parts: Drawn) -> Drawn:
    return Drawn(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@pytest.mark.parametrize("cuts", [[1, 2, 3], [500], [999], [100, 900]])
def test_it_does_not_matter_in_which_pieces_payments_are_drawn(cuts: list[int]) -> None:
    payments = Payments.of(7, 2, 100)
    places = [0, *cuts, 1000]
    pieces = [payments.draw(first, following) for first, following in pairwise(places)]
    assert same(joined(*pieces), payments.draw(0, 1000))


def test_the_same_seed_gives_the_same_payments_and_another_one_others() -> None:
    drawn = Payments.of(7, 2, 100).draw(0, 1000)
    assert same(drawn, Payments.of(7, 2, 100).draw(0, 1000))
    for column in ("source", "account", "amount"):
        other = getattr(Payments.of(8, 2, 100).draw(0, 1000), column)
        assert not np.array_equal(getattr(drawn, column), other)


def test_the_second_account_is_half_as_busy_as_the_first_and_the_tenth_a_tenth() -> None:
    often = np.bincount(Payments.of(1, 2, 1000).draw(0, 400_000).account, minlength=1000)
    assert often[1] / often[0] == pytest.approx(0.5, rel=0.05)
    assert often[9] / often[0] == pytest.approx(0.1, rel=0.1)
    assert np.count_nonzero(often) == 1000


@pytest.mark.parametrize("sources", [1, 2, 3])
def test_every_source_has_an_even_share_and_none_is_invented(sources: int) -> None:
    shares = np.bincount(Payments.of(1, sources, 10).draw(0, 30_000).source)
    assert len(shares) == sources
    assert shares.min() > 0.95 * 30_000 / sources


def test_which_source_a_payment_has_says_nothing_about_its_account_or_amount() -> None:
    drawn = Payments.of(1, 2, 1000).draw(0, 100_000)
    for column in (drawn.account, drawn.amount):
        assert abs(np.corrcoef(drawn.source, column)[0, 1]) < 0.02


def test_amounts_are_never_zero_and_more_is_paid_in_than_out() -> None:
    amounts = Payments.of(1, 2, 1000).draw(0, 100_000).amount
    assert (amounts != 0).all()
    assert (amounts > 0).mean() == pytest.approx(0.6, abs=0.01)
    assert np.abs(amounts).max() <= 10_000


def test_one_account_is_enough() -> None:
    assert set(Payments.of(1, 1, 1).draw(0, 1000).account.tolist()) == {0}


@pytest.mark.parametrize("seed", [0, -1, 2**80])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    assert len(Payments.of(seed, 2, 10).draw(0, 10).number) == 10


def test_an_account_is_in_the_partition_that_an_emission_with_its_key_goes_to() -> None:
    for account in map(account_name, range(1000)):
        assert partition_of(account, 7) == Emission("moves", None, key=account).target(7)
