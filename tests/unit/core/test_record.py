"""The header `zt`, alone and as a column."""

from __future__ import annotations

import struct
from dataclasses import FrozenInstanceError, replace
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pytest

from zerotail.core import record
from zerotail.core.identity import Epoch, ProducerNumber, Serial
from zerotail.core.installation import UNMARKED, Installation
from zerotail.core.record import (
    NO_DIGEST,
    Header,
    decode,
    decode_column,
    digest_column,
    digest_of,
    encode,
    encode_column,
)
from zerotail.errors import Misused, Refused

pytestmark = pytest.mark.fast

HEADER = Header(Epoch(257), ProducerNumber(2), Serial(41), bytes(range(8)))
LARGEST = 2**63 - 1
LARGEST_EPOCH = 2**56 - 1
OURS = Installation(bytes.fromhex("a1b2c3d4") + bytes(12), accepts_unmarked=False)


def headers(count: int) -> list[Header]:
    return [
        Header(Epoch(256 + row), ProducerNumber(row % 3), Serial(row + 1), digest_of(b"%d" % row))
        for row in range(count)
    ]


def rows_of(column: pa.Array | pa.ChunkedArray) -> list[Header | None]:
    """The column's headers one by one, None where a row is foreign."""
    found = decode_column(column)
    assert len(found) == len(column)
    numbers = zip(
        found.own.tolist(),
        found.epochs.tolist(),
        found.producers.tolist(),
        found.serials.tolist(),
        found.digests.tolist(),
        strict=True,
    )
    rows: list[Header | None] = []
    for own, epoch, producer, serial, digest in numbers:
        if own:
            rows.append(Header(epoch, producer, serial, struct.pack("<Q", digest)))
        else:
            assert (epoch, producer, serial, digest) == (0, 0, 0, 0)
            rows.append(None)
    return rows


def test_the_layout_is_fixed_to_the_byte() -> None:
    data = encode(Header(Epoch(0x0102), ProducerNumber(0x03040506), Serial(0x0708), b"digest!!"))
    assert data == (b"\x01\x00\x00\x00\x06\x05\x04\x03\x02\x01" + bytes(6) + b"\x08\x07" + bytes(6) + b"digest!!")


def test_the_digest_is_eight_bytes_of_blake2b() -> None:
    assert digest_of(b"pay 10") == blake2b(b"pay 10", digest_size=8).digest()


def test_no_value_and_an_empty_value_have_different_digests() -> None:
    assert digest_of(None) == NO_DIGEST == bytes(8)
    assert digest_of(b"") != NO_DIGEST


@pytest.mark.parametrize(
    "header",
    [
        replace(HEADER, producer=ProducerNumber(0), epoch=Epoch(0), serial=Serial(1)),
        replace(HEADER, producer=ProducerNumber(2**32 - 1), epoch=Epoch(LARGEST_EPOCH), serial=Serial(LARGEST)),
        replace(HEADER, epoch=Epoch(LARGEST_EPOCH), mark=2**32 - 1),
        replace(HEADER, mark=1),
        replace(HEADER, mark=1 << 24),
    ],
)
def test_the_smallest_and_largest_numbers_come_back(header: Header) -> None:
    assert decode(encode(header)) == header
    assert rows_of(pa.array([encode(header)])) == [replace(header, mark=0)]
    digest = np.frombuffer(header.digest, dtype="<u8")
    column = encode_column(header.epoch, header.producer, header.serial, digest, header.mark)
    assert column.to_pylist() == [encode(header)]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (replace(HEADER, producer=ProducerNumber(-1)), "producer number -1; it must be 0 to 4294967295"),
        (
            replace(HEADER, producer=ProducerNumber(2**32)),
            "producer number 4294967296; it must be 0 to 4294967295",
        ),
        (replace(HEADER, epoch=Epoch(-1)), f"epoch -1; it must be 0 to {LARGEST_EPOCH}"),
        (replace(HEADER, epoch=Epoch(2**56)), f"epoch {2**56}; it must be 0 to {LARGEST_EPOCH}"),
        (replace(HEADER, serial=Serial(0)), f"serial 0; it must be 1 to {LARGEST}"),
        (replace(HEADER, serial=Serial(LARGEST + 1)), f"serial {LARGEST + 1}; it must be 1 to {LARGEST}"),
    ],
)
def test_a_number_that_does_not_fit_is_not_encoded(header: Header, words: str) -> None:
    with pytest.raises(Misused, match=words):
        encode(header)
    with pytest.raises(Misused, match=words):
        encode_column(
            np.array([header.epoch], dtype=object),
            np.array([header.producer], dtype=object),
            np.array([header.serial], dtype=object),
            0,
        )


def test_a_digest_of_another_length_is_not_encoded() -> None:
    with pytest.raises(Misused, match="digest of 8 bytes, not of 7"):
        encode(replace(HEADER, digest=bytes(7)))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_header_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(Refused, match=f"has 32 bytes, this one has {length}"):
        decode(bytes(length))


@pytest.mark.parametrize(
    ("place", "data", "words"),
    [
        (0, b"\x03", "version 3; this program reads versions 1 and 2"),
        (0, b"\x00", "version 0; this program reads versions 1 and 2"),
        (0, b"\x02", "version 2 has no mark"),
        (1, b"\x01", "mark 010000; version 1 has zeros there"),
        (3, b"\xff", "mark 0000ff"),
        (8, struct.pack("<Q", 2**56), f"epoch {2**56}; the largest is {LARGEST_EPOCH}"),
        (16, struct.pack("<Q", 0), f"serial 0; it must be 1 to {LARGEST}"),
        (16, struct.pack("<Q", 2**63), f"serial {2**63}; it must be 1 to {LARGEST}"),
    ],
)
def test_a_header_that_this_version_cannot_read_is_refused_and_never_taken_for_foreign(
    place: int, data: bytes, words: str
) -> None:
    good = encode(HEADER)
    bad = good[:place] + data + good[place + len(data) :]
    with pytest.raises(Refused, match=words):
        decode(bad)
    for column in (pa.array([good, bad]), pa.array([None, good, bad, good])):
        with pytest.raises(Refused, match=words):
            decode_column(column)


def test_the_mark_of_an_installation_stands_in_four_bytes_of_the_header() -> None:
    data = encode(replace(HEADER, mark=OURS.mark))
    assert data[:4] == b"\x02\xa1\xb2\xc3"
    assert data[15:16] == b"\xd4"
    assert data[4:15] == encode(HEADER)[4:15]
    assert decode(data).mark == OURS.mark


@pytest.mark.parametrize(
    ("installation", "kept", "strangers"),
    [
        (None, [0, 1, 2, 3, 5], 0),
        (OURS, [1, 5], 3),
        (replace(OURS, accepts_unmarked=True), [0, 1, 5], 2),
        (UNMARKED, [0], 4),
    ],
)
def test_a_record_of_another_installation_is_foreign_and_counted(
    installation: Installation | None, kept: list[int], strangers: int
) -> None:
    marks = [0, OURS.mark, OURS.mark ^ 1, OURS.mark ^ 1 << 31, None, OURS.mark]
    sent = [None if mark is None else replace(one, mark=mark) for one, mark in zip(headers(6), marks, strict=True)]
    column = pa.array([None if one is None else encode(one) for one in sent], pa.binary())
    for found in (decode_column(column, installation), decode_column(pa.chunked_array([column]), installation)):
        assert np.flatnonzero(found.own).tolist() == kept
        assert found.strangers == strangers
        for row, one in enumerate(sent):
            epoch, serial = (one.epoch, one.serial) if one is not None and row in kept else (0, 0)
            assert (found.epochs[row], found.serials[row]) == (epoch, serial)
            if one is not None and installation is not None:
                assert installation.owns(one.mark) == (row in kept)
    unreadable = pa.array([*column.to_pylist(), b"\x07" + encode(HEADER)[1:]])
    with pytest.raises(Refused, match="version 7"):
        decode_column(unreadable, installation)


def test_an_unknown_version_says_what_to_look_at_next() -> None:
    with pytest.raises(Refused) as refusal:
        decode(b"\x07" + encode(HEADER)[1:])
    assert refusal.value.why == "Leaving such a record out could lose an instruction."
    assert refusal.value.tries[0].startswith("zerotail version ")


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(32)])
def test_a_well_formed_column_of_any_binary_type_is_decoded(kind: pa.DataType) -> None:
    expected = headers(20)
    assert rows_of(pa.array([encode(header) for header in expected], type=kind)) == expected


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("foreign", [None, b"", b"somebody else's", bytes(33), bytes(64)])
def test_null_and_values_of_another_length_are_foreign(kind: pa.DataType, foreign: bytes | None) -> None:
    first, second, third = headers(3)
    values = [foreign, encode(first), foreign, encode(second), encode(third), foreign]
    assert rows_of(pa.array(values, type=kind)) == [None, first, None, second, third, None]


def test_lengths_that_only_add_up_to_whole_headers_are_foreign() -> None:
    assert rows_of(pa.array([bytes(16), bytes(48)])) == [None, None]


def test_the_bytes_under_a_null_are_not_read() -> None:
    data = pa.py_buffer(b"\x09" * 32 + encode(HEADER))
    offsets = pa.py_buffer(np.array([0, 32, 64], dtype=np.int32))
    column = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x02"), offsets, data])
    assert rows_of(column) == [None, HEADER]


def test_a_column_of_foreign_rows_only_has_no_header() -> None:
    assert rows_of(pa.array([None, None], type=pa.binary())) == [None, None]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(32)])
def test_a_slice_of_a_column_is_decoded_at_its_own_place(kind: pa.DataType) -> None:
    expected = headers(10)
    column = pa.array([encode(header) for header in expected], type=kind)
    assert rows_of(column.slice(3, 4)) == expected[3:7]
    mixed = pa.array([None, *(encode(header) for header in expected)], type=kind)
    assert rows_of(mixed.slice(0, 3)) == [None, *expected[:2]]
    assert rows_of(mixed.slice(2)) == expected[1:]


def test_a_chunked_column_is_decoded_in_the_order_of_its_chunks() -> None:
    expected = headers(6)
    column = pa.array([encode(header) for header in expected])
    foreign = pa.array([None], type=pa.binary())
    assert rows_of(pa.chunked_array([column.slice(4), foreign, column.slice(0, 2)])) == [
        *expected[4:],
        None,
        *expected[:2],
    ]
    assert rows_of(pa.chunked_array([column])) == expected


def test_an_empty_column_has_no_rows() -> None:
    assert rows_of(pa.array([], type=pa.binary())) == []
    assert rows_of(pa.chunked_array([], type=pa.binary())) == []


def test_a_column_that_is_not_binary_is_misused() -> None:
    with pytest.raises(Misused, match="headers is binary; this one is int64"):
        decode_column(pa.array([1]))


def test_a_column_is_encoded_as_its_rows_would_be() -> None:
    expected = headers(9)
    column = encode_column(
        [header.epoch for header in expected],
        [header.producer for header in expected],
        [header.serial for header in expected],
        digest_column(pa.array([b"%d" % row for row in range(9)])),
    )
    column.validate(full=True)
    assert column.type == pa.binary()
    assert column.to_pylist() == [encode(header) for header in expected]


def test_one_number_stands_for_every_row_of_an_encoded_column() -> None:
    column = encode_column(257, 2, [41, 42], 0)
    assert column.to_pylist() == [
        encode(Header(Epoch(257), ProducerNumber(2), Serial(serial), NO_DIGEST)) for serial in (41, 42)
    ]


def test_no_rows_are_encoded_as_an_empty_column() -> None:
    assert encode_column(257, 2, [], []).to_pylist() == []


def test_more_headers_than_a_column_can_hold_are_misused_before_memory_is_taken() -> None:
    most = (2**31 - 1) // 32
    with pytest.raises(Misused, match=f"one column holds {most} headers at most, not {most + 1}"):
        encode_column(257, 2, np.broadcast_to(np.int64(1), most + 1), 0)


def test_headers_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        HEADER.serial = Serial(2)  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        decode_column(pa.array([encode(HEADER)])).own = np.zeros(1, dtype=np.bool_)  # type: ignore[misc]


def test_a_column_holds_exactly_as_many_headers_as_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_MOST_ROWS", 3)
    assert len(encode_column(257, 2, [1, 2, 3], 0)) == 3
    with pytest.raises(Misused, match="3 headers at most, not 4"):
        encode_column(257, 2, [1, 2, 3, 4], 0)


def test_a_wrong_serial_is_named_even_beside_the_largest_epoch() -> None:
    data = encode(replace(HEADER, epoch=Epoch(LARGEST_EPOCH)))
    with pytest.raises(Refused, match="header has serial 0"):
        decode(data[:16] + bytes(8) + data[24:])


def test_digests_of_a_column_are_the_digests_of_its_values() -> None:
    values = [b"pay 10", b"", None, b"pay 20"]
    column = pa.array(values, type=pa.binary())
    expected = [struct.unpack("<Q", digest_of(value))[0] for value in values]
    assert digest_column(column).tolist() == expected
    assert digest_column(pa.chunked_array([column.slice(1, 1), column.slice(3)])).tolist() == [
        expected[1],
        expected[3],
    ]
