"""Where a log ends: at its last record that is one of ours, whatever else was put behind it."""

from __future__ import annotations

import pytest

from zerotail.core.identity import Epoch, ProducerNumber, Serial
from zerotail.core.installation import UNMARKED
from zerotail.core.record import HEADER_NAME, Header, digest_of, encode
from zerotail.kafka.end import _own_record

pytestmark = pytest.mark.fast

OWN = encode(Header(Epoch(256), ProducerNumber(2), Serial(7), digest_of(b"")))


@pytest.mark.parametrize(
    ("header", "found"),
    [(OWN, (2, 7)), (bytes([9]) + OWN[1:], None), (bytes(32), None), (OWN[:-1], None)],
    ids=["own", "of a newer version", "zeros", "too short"],
)
def test_what_nobody_can_read_is_passed_over(header: bytes, found: tuple[int, int] | None) -> None:
    """The stage that reads it stops at it; a follower only has to find its own place."""
    assert _own_record(UNMARKED, {HEADER_NAME: header}) == found
