"""The examples in the docstrings of the order modules give what they say."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from zerotail.core import merge, order, record, refill, segment
from zerotail.core.restoration import arrivals, batch

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("module", [record, order, segment, merge, refill, arrivals, batch], ids=lambda m: m.__name__)
def test_the_examples_give_what_they_say(module: ModuleType) -> None:
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_example_of_the_unbounded_restoration_gives_what_it_says() -> None:
    import sys

    import zerotail.core.restoration

    outcome = doctest.testmod(sys.modules[zerotail.core.restoration.unbounded.__module__])
    assert (outcome.attempted, outcome.failed) == (7, 0)
