"""A reconciliation is well when it found no difference."""

from __future__ import annotations

import pytest

from zerotail.core.reconciliation import Difference, Reconciliation

pytestmark = pytest.mark.fast


def test_one_difference_is_enough_to_say_no() -> None:
    well = Reconciliation(10, 8, 2, 3, compared=True, counts={}, differences=())
    assert well.ok
    lost = Difference("lost", "settle", 0, 2, 7, 1, 5, "it has no row")
    assert not Reconciliation(10, 8, 2, 3, compared=True, counts={"lost": 1}, differences=(lost,)).ok
