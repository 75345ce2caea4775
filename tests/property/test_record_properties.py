"""For every column of headers: the same rows as by decoding them one by one."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.core.identity import Epoch, ProducerNumber, Serial
from zerotail.core.installation import UNMARKED, Installation
from zerotail.core.record import Header, decode, decode_column, digest_of, encode, encode_column

pytestmark = pytest.mark.fast

MARKS = (0, 1, 1 << 23, 1 << 24, 2**32 - 1)
headers = st.builds(
    Header,
    epoch=st.integers(0, 2**56 - 1).map(Epoch),
    producer=st.integers(0, 2**32 - 1).map(ProducerNumber),
    serial=st.integers(1, 2**63 - 1).map(Serial),
    digest=st.binary(min_size=8, max_size=8),
    mark=st.sampled_from(MARKS) | st.integers(0, 2**32 - 1),
)
installations = st.sampled_from([None, UNMARKED]) | st.builds(
    Installation, st.sampled_from(MARKS[1:]).map(lambda mark: mark.to_bytes(4, "little") + bytes(12)), st.booleans()
)
foreign = st.none() | st.binary(max_size=80).filter(lambda data: len(data) != 32)


@given(headers)
def test_a_header_comes_back(header: Header) -> None:
    data = encode(header)
    assert len(data) == 32
    assert decode(data) == header


@given(st.lists(headers), st.sampled_from(MARKS))
def test_a_column_is_encoded_and_decoded_as_its_rows(drawn: list[Header], mark: int) -> None:
    expected = [replace(header, mark=mark) for header in drawn]
    digests = np.frombuffer(b"".join(header.digest for header in expected), dtype="<u8")
    column = encode_column(
        np.array([header.epoch for header in expected], dtype=np.int64),
        np.array([header.producer for header in expected], dtype=np.int64),
        np.array([header.serial for header in expected], dtype=np.int64),
        digests,
        mark,
    )
    assert column.to_pylist() == [encode(header) for header in expected]


@given(st.lists(headers.map(encode) | foreign), installations, st.data())
def test_any_cut_of_a_mixed_column_is_decoded_row_by_row(
    rows: list[bytes | None], installation: Installation | None, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from([pa.binary(), pa.large_binary()]))
    first = data.draw(st.integers(0, len(rows)))
    second = data.draw(st.integers(first, len(rows)))
    whole = pa.array(rows, type=kind)
    parts = [whole.slice(first, second - first), whole.slice(second), whole.slice(0, first)]
    found = decode_column(pa.chunked_array(parts, type=kind), installation)
    strangers = 0
    for row, value in enumerate([*rows[first:], *rows[:first]]):
        header = decode(value) if value is not None and len(value) == 32 else None
        own = header is not None and (installation is None or installation.owns(header.mark))
        strangers += header is not None and not own
        assert found.own[row] == own
        if header is not None and own:
            digest = struct.pack("<Q", int(found.digests[row]))
            numbers = (found.epochs[row], found.producers[row], found.serials[row])
            assert Header(*numbers, digest, header.mark) == header
    assert found.strangers == strangers


@given(st.binary(max_size=200))
def test_the_digest_tells_values_apart_from_none(value: bytes) -> None:
    assert digest_of(value) != digest_of(None)
    assert len(digest_of(value)) == 8
