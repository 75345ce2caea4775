"""Where a stage begins to read: at its hint only if that still names a place in this very log."""

from __future__ import annotations

import pytest

from zerotail.core.head import Hint
from zerotail.core.identity import Offset
from zerotail.spark.running_stage import start_offset
from zerotail.spark.stage_query import FROM_THE_BEGINNING

pytestmark = pytest.mark.fast

BOUNDS = (Offset(10), Offset(20))


@pytest.mark.parametrize("offset", [10, 15, 20])
def test_a_hint_into_this_log_is_followed(offset: int) -> None:
    assert start_offset(Hint("this", Offset(offset)), "this", BOUNDS) == offset


@pytest.mark.parametrize("hint", [None, Hint("another", Offset(15)), Hint("this", Offset(9)), Hint("this", Offset(21))])
def test_any_other_hint_means_the_beginning(hint: Hint | None) -> None:
    assert start_offset(hint, "this", BOUNDS) == FROM_THE_BEGINNING
