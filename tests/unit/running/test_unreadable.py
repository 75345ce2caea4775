"""A header that this version cannot read ends a batch in front of it, with the offset at which it lies."""

from __future__ import annotations

import pyarrow as pa
import pytest

from zerotail.core.identity import ProducerNumber, Serial, epoch_of
from zerotail.core.record import HEADER_BYTES, Header, digest_of, encode
from zerotail.spark.stage_query import _readable_part

pytestmark = pytest.mark.fast


def _table(*headers: bytes | None) -> pa.Table:
    offsets = pa.array(range(100, 100 + len(headers)), pa.int64())
    return pa.table({"offset": offsets, "header": pa.array(headers, pa.binary())})


OWN = encode(Header(epoch_of(1, 0), ProducerNumber(1), Serial(1), digest_of(b"")))
NEWER = bytes([9]) + OWN[1:]


def test_the_records_in_front_of_it_are_taken() -> None:
    readable, reason = _readable_part(_table(OWN, None, b"short", NEWER, OWN))
    assert readable.column("offset").to_pylist() == [100, 101, 102]
    assert reason.startswith("offset 103 of the topic: a record has a zt header of version 9")


def test_foreign_records_are_readable() -> None:
    table = _table(None, bytes(HEADER_BYTES - 1), OWN)
    assert _readable_part(table) == (table, "")
