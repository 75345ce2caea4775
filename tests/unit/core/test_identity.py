"""Epochs: a generation and the site that opened it, in one number."""

from __future__ import annotations

import pytest

from zerotail.core.identity import epoch_of, generation_of, site_number_of

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(("generation", "site"), [(1, 0), (1, 255), (7, 1), (2**40, 3)])
def test_an_epoch_says_its_generation_and_its_site(generation: int, site: int) -> None:
    epoch = epoch_of(generation, site)
    assert (generation_of(epoch), site_number_of(epoch)) == (generation, site)


def test_no_two_sites_and_no_two_generations_share_an_epoch() -> None:
    epochs = [epoch_of(generation, site) for generation in range(1, 20) for site in range(256)]
    assert epochs == sorted(set(epochs))


@pytest.mark.parametrize(("generation", "site"), [(0, 0), (-1, 0), (1, -1), (1, 256)])
def test_a_number_that_is_none_is_refused(generation: int, site: int) -> None:
    with pytest.raises(ValueError, match="no epoch has generation"):
        epoch_of(generation, site)
