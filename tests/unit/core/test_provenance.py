"""The header that says where a mirrored record comes from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.provenance import (
    HEADER_NAME,
    Origin,
    Provenance,
    decode,
    find_provenance,
    passed_clusters,
    stamper,
)
from zerotail.errors import Refused

pytestmark = pytest.mark.fast

EAST = Origin("east", TopicName("audit"), b"0123456789abcdef", PartitionNumber(7))
HUB = Origin("hub", TopicName("east.audit"), b"fedcba9876543210", PartitionNumber(7))
NAME = st.text("abcdefghijklmnopqrstuvwxyz-_0123456789", min_size=1, max_size=40)


@given(NAME, NAME, st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_what_is_stamped_is_read_back(cluster: str, topic: str, topic_id: bytes, partition: int, offset: int) -> None:
    origin = Origin(cluster, TopicName(topic), topic_id, PartitionNumber(partition))
    assert decode(stamper(origin)(offset)) == Provenance(origin, Offset(offset))


def test_the_offset_stands_where_sql_looks_for_it() -> None:
    value = stamper(EAST)(258)
    assert int(value[8:16].hex(), 16) == 258
    assert int(value[4:8].hex(), 16) == 7
    assert value[32:] == b"east/audit"


def test_the_nearest_source_is_the_last_one() -> None:
    headers = [("trace", b"1"), (HEADER_NAME, stamper(EAST)(5)), ("empty", None), (HEADER_NAME, stamper(HUB)(9))]
    assert find_provenance(headers) == Provenance(HUB, Offset(9))
    assert passed_clusters(headers) == ("east", "hub")


def test_a_record_without_the_header_was_written_locally() -> None:
    assert find_provenance([("trace", b"1"), (HEADER_NAME, None)]) is None
    assert passed_clusters([]) == ()


@pytest.mark.parametrize(
    "data",
    [b"", b"\x02" + stamper(EAST)(1)[1:], stamper(EAST)(1)[:31], b"\x01\x01" + stamper(EAST)(1)[2:], bytes(40)],
)
def test_a_header_that_cannot_be_read_is_refused_and_not_taken_for_none(data: bytes) -> None:
    with pytest.raises(Refused):
        find_provenance([(HEADER_NAME, data)])


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        origin = decode(data).origin
    except Refused:
        return
    assert f"{origin.cluster}/{origin.topic}".encode() == data[32:]
