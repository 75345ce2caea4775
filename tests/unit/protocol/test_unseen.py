"""What a receiver that knows its last number has not seen of a batch."""

from __future__ import annotations

import pytest

from zerotail.core.identity import EmissionNumber
from zerotail.core.receiver import find_unseen

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("last", "first", "unseen"),
    [(0, 1, [b"a", b"b"]), (1, 1, [b"b"]), (2, 1, []), (5, 6, [b"a", b"b"]), (5, 7, None)],
)
def test_what_is_new_is_taken_and_a_gap_is_none(last: int, first: int, unseen: list[bytes] | None) -> None:
    assert find_unseen(EmissionNumber(last), EmissionNumber(first), [b"a", b"b"]) == unseen
