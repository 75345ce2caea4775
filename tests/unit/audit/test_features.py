"""The answer in which a broker tells its features, taken apart byte by byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.kafka.features import parse_features

pytestmark = pytest.mark.fast


def answer(features: dict[str, int], error: int = 0) -> bytes:
    """As a broker writes it: two requests that it knows, then the features."""
    keys = b"\x03" + 2 * (struct.pack(">hhh", 18, 0, 4) + b"\0")
    rows = b"".join(
        bytes([len(name) + 1]) + name.encode() + struct.pack(">hh", level, 0) + b"\0"
        for name, level in features.items()
    )
    content = bytes([len(features) + 1]) + rows
    supported = b"\0\x01\x01"
    tags = b"\x02" + supported + b"\x02" + bytes([len(content)]) + content
    return struct.pack(">ih", 1, error) + keys + struct.pack(">i", 0) + tags


def test_features_and_their_levels_are_read() -> None:
    features = {"eligible.leader.replicas.version": 1, "metadata.version": 29}
    assert parse_features(answer(features)) == features
    assert parse_features(answer({})) == {}


def test_a_broker_that_is_too_old_has_none() -> None:
    assert parse_features(struct.pack(">ih", 1, 35)) == {}


def test_an_error_is_not_taken_for_an_answer() -> None:
    with pytest.raises(OSError, match="error 41"):
        parse_features(answer({}, error=41))


@pytest.mark.parametrize("length", range(len(answer({"a": 1}))))
def test_an_answer_that_ends_early_is_not_taken_for_a_whole_one(length: int) -> None:
    with pytest.raises(OSError, match="too early"):
        parse_features(answer({"a": 1})[:length])


@given(st.binary(max_size=200))
def test_any_bytes_are_either_understood_or_an_error(content: bytes) -> None:
    try:
        parse_features(content)
    except (OSError, UnicodeDecodeError):
        return
