"""Messages of one lane and segment as one value."""

from __future__ import annotations

import pytest

from zerotail.core.emission import pack_messages, unpack_messages
from zerotail.errors import Broken

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("messages", [[], [b""], [b"one"], [b"one", b"", b"three" * 100]])
def test_unpacking_gives_what_was_packed(messages: list[bytes]) -> None:
    assert unpack_messages(pack_messages(messages), len(messages)) == messages


@pytest.mark.parametrize(
    ("packed", "count"),
    [
        (pack_messages([b"one", b"two"]), 1),
        (pack_messages([b"one"]), 2),
        (pack_messages([b"one"])[:-1], 1),
        (pack_messages([b"one"]) + b"x", 1),
    ],
    ids=["one too many", "one too few", "cut short", "something behind"],
)
def test_a_packed_value_that_does_not_hold_just_so_many_is_broken(packed: bytes, count: int) -> None:
    with pytest.raises(Broken, match="an outbox row says"):
        unpack_messages(packed, count)
