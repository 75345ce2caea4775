"""The header `zt`: what a record in Kafka says about itself, in 32 bytes.

    byte   0        1..3       4..7       8..14   15     16..23   24..31
           version  mark       producer   epoch   mark   serial   digest of the value

Numbers are little endian; the digest is BLAKE2b of the value, 8 bytes long, and 8 zero bytes where a record has no
value at all. The mark says which installation the record is from (`installation.py`): its first three bytes, then its
fourth. Of an installation without an identity the version is 1, else 2; version 1 has zeros in bytes 1..3, and an epoch
of 8 bytes, which was never so large that byte 15 was anything but zero. One packed header costs far less to carry
through Spark than one header per field, and because its size is fixed, a whole Arrow column of headers is read as one
NumPy array, without a step per record.

1. `decode` is the inverse of `encode`, and the column functions agree with both, row by row.
2. A record without a header of 32 bytes is foreign: somebody else's, not an error. So is one of another installation,
   where whoever reads says which one is its own; those are counted by themselves.
3. A header of 32 bytes that this version cannot read is refused, never taken for foreign: dropping it could
   lose a record.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zerotail.core.identity import Epoch, ProducerNumber, Serial
from zerotail.core.installation import NO_MARK, Installation
from zerotail.errors import Misused, Refused

HEADER_NAME = "zt"
HEADER_BYTES = 32
UNMARKED_VERSION = 1
MARKED_VERSION = 2
DIGEST_BYTES = 8
NO_DIGEST = bytes(DIGEST_BYTES)

_LAYOUT = struct.Struct("<B3sIQQ8s")
_LARGEST_PRODUCER = 2**32 - 1
_LARGEST = 2**63 - 1  # the database and Arrow count with signed numbers
_EPOCH_BITS = 56
_LARGEST_EPOCH = 2**_EPOCH_BITS - 1
_LARGEST_MARK = 2**32 - 1

# Version and the first three bytes of the mark are read as one number, the epoch and the fourth byte as another.
_ROW = np.dtype([("lead", "<u4"), ("producer", "<u4"), ("epoch", "<u8"), ("serial", "<i8"), ("digest", "<u8")])
_MOST_ROWS = (2**31 - 1) // HEADER_BYTES  # Arrow's binary type counts its bytes with 32 bits

Numbers = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Header:
    """The header of one record.

    >>> header = Header(Epoch(257), ProducerNumber(2), Serial(41), digest_of(b"pay 10"))
    >>> decode(encode(header)) == header
    True
    """

    epoch: Epoch
    producer: ProducerNumber
    serial: Serial
    digest: bytes
    mark: int = NO_MARK


@dataclass(frozen=True, slots=True, eq=False)
class Headers:
    """The headers of a column, row by row; the numbers of a foreign row are 0."""

    own: npt.NDArray[np.bool_]
    epochs: Numbers
    producers: Numbers
    serials: Numbers
    digests: Digests
    strangers: int = 0
    """Rows that are foreign because they are of another installation."""

    def __len__(self) -> int:
        return len(self.own)


def digest_of(value: bytes | None) -> bytes:
    """The digest that a header carries for this value."""
    return NO_DIGEST if value is None else blake2b(value, digest_size=DIGEST_BYTES).digest()


def encode(header: Header) -> bytes:
    """The 32 bytes of a header."""
    if not 0 <= header.producer <= _LARGEST_PRODUCER:
        raise Misused(f"a header cannot hold producer number {header.producer}; it must be 0 to {_LARGEST_PRODUCER}")
    if not 0 <= header.epoch <= _LARGEST_EPOCH:
        raise Misused(f"a header cannot hold epoch {header.epoch}; it must be 0 to {_LARGEST_EPOCH}")
    if not 0 <= header.mark <= _LARGEST_MARK:
        raise Misused(f"a header cannot hold mark {header.mark}; it must be 0 to {_LARGEST_MARK}")
    if not 1 <= header.serial <= _LARGEST:
        raise Misused(f"a header cannot hold serial {header.serial}; it must be 1 to {_LARGEST}")
    if len(header.digest) != DIGEST_BYTES:
        raise Misused(f"a header holds a digest of {DIGEST_BYTES} bytes, not of {len(header.digest)}")
    lead, top = _marked(header.mark)
    return _LAYOUT.pack(
        lead & 0xFF,
        (lead >> 8).to_bytes(3, "little"),
        header.producer,
        header.epoch | top << _EPOCH_BITS,
        header.serial,
        header.digest,
    )


def decode(data: bytes) -> Header:
    """The header that these bytes are; refused if they are none that this version can read."""
    if len(data) != HEADER_BYTES:
        raise Refused(f"a {HEADER_NAME} header has {HEADER_BYTES} bytes, this one has {len(data)}")
    version, first, producer, epoch, serial, digest = _LAYOUT.unpack(data)
    mark = int.from_bytes(first, "little") | epoch >> _EPOCH_BITS << 24
    if version != (MARKED_VERSION if mark else UNMARKED_VERSION) or not 1 <= serial <= _LARGEST:
        raise _refusal(data)
    return Header(Epoch(epoch & _LARGEST_EPOCH), ProducerNumber(producer), Serial(serial), digest, mark)


def decode_column(column: pa.Array | pa.ChunkedArray, installation: Installation | None = None) -> Headers:
    """The headers of an Arrow column of binary values.

    Null and values of another length are foreign rows, and those of other installations than this one; without one,
    whoever asks has seen to that. Without any foreign row the bytes are read where they lie.
    """
    if isinstance(column, pa.ChunkedArray):
        return _concatenate([decode_column(chunk, installation) for chunk in column.chunks])
    own, rows = _rows_of(column)
    lead, top = _marked(NO_MARK if installation is None else installation.mark)
    epochs = rows["epoch"] & _LARGEST_EPOCH
    strange = (rows["lead"] != lead) | (rows["epoch"] >> _EPOCH_BITS != top)
    strangers = 0
    if (rows["serial"] < 1).any() or strange.any():
        strange = _strange(rows, installation)
        strangers = int(np.count_nonzero(strange))
    if strangers:
        own = own.copy()
        own[np.flatnonzero(own)[strange]] = False
        rows, epochs = rows[~strange], epochs[~strange]
    if len(rows) == len(own):
        return Headers(
            own=own,
            epochs=epochs.astype(np.int64),
            producers=rows["producer"].astype(np.int64),
            serials=rows["serial"].astype(np.int64),
            digests=rows["digest"].astype(np.uint64),
        )
    headers = _foreign(own, strangers)
    headers.epochs[own] = epochs
    headers.producers[own] = rows["producer"]
    headers.serials[own] = rows["serial"]
    headers.digests[own] = rows["digest"]
    return headers


def encode_column(
    epochs: npt.ArrayLike,
    producers: npt.ArrayLike,
    serials: npt.ArrayLike,
    digests: npt.ArrayLike,
    mark: int = NO_MARK,
) -> pa.Array:
    """The headers of many records of an installation as an Arrow column; a single number stands for every row.

    >>> column = encode_column(257, 2, [41, 42], digest_column(pa.array([b"pay 10", b"pay 20"])))
    >>> decode_column(column).serials.tolist()
    [41, 42]
    """
    epoch, producer, serial, digest = np.broadcast_arrays(
        np.atleast_1d(epochs), np.atleast_1d(producers), np.atleast_1d(serials), np.atleast_1d(digests)
    )
    count = len(serial)
    if count > _MOST_ROWS:
        raise Misused(f"one column holds {_MOST_ROWS} headers at most, not {count}: encode them in several batches")
    for name, numbers, least, most in (
        ("epoch", epoch, 0, _LARGEST_EPOCH),
        ("producer number", producer, 0, _LARGEST_PRODUCER),
        ("serial", serial, 1, _LARGEST),
    ):
        wrong = (numbers < least) | (numbers > most)
        if wrong.any():
            raise Misused(f"a header cannot hold {name} {numbers[wrong.argmax()]}; it must be {least} to {most}")
    rows = np.empty(count, dtype=_ROW)
    rows["lead"], top = _marked(mark)
    rows["epoch"], rows["producer"] = epoch, producer
    rows["epoch"] |= np.uint64(top << _EPOCH_BITS)
    rows["serial"], rows["digest"] = serial, digest
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(HEADER_BYTES)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(rows)])


def digest_column(values: pa.Array | pa.ChunkedArray) -> Digests:
    """The digests of an Arrow column of values, each as the number that its 8 bytes are in little endian."""
    digests = b"".join(map(digest_of, values.to_pylist()))
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def digests_of(values: Sequence[bytes]) -> bytes:
    """The digests of values, none of which is missing, end to end."""
    return b"".join([blake2b(value, digest_size=DIGEST_BYTES).digest() for value in values])


def _rows_of(column: pa.Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.void]]:
    """Which rows have 32 bytes, and those rows read by the layout."""
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    if pa.types.is_binary(column.type):
        width: np.dtype[np.signedinteger] = np.dtype(np.int32)
    elif pa.types.is_large_binary(column.type):
        width = np.dtype(np.int64)
    else:
        raise Misused(f"a column of {HEADER_NAME} headers is binary; this one is {column.type}")
    count = len(column)
    if count == 0:
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=_ROW)
    _, offset_buffer, data = column.buffers()
    start = column.offset * width.itemsize
    offsets = np.frombuffer(offset_buffer, dtype=width, count=count + 1, offset=start)
    own = np.diff(offsets) == HEADER_BYTES
    if column.null_count:
        own &= column.is_valid().to_numpy(zero_copy_only=False)
    if own.all():
        return own, np.frombuffer(data, dtype=_ROW, count=count, offset=int(offsets[0]))
    _, rows = _rows_of(column.filter(pa.array(own)))
    return own, rows


def _marked(mark: int) -> tuple[int, int]:
    """What a header of this mark has in its first four bytes, and in byte 15."""
    return (MARKED_VERSION if mark else UNMARKED_VERSION) | (mark & 0xFFFFFF) << 8, mark >> 24


def _strange(rows: npt.NDArray[np.void], installation: Installation | None) -> npt.NDArray[np.bool_]:
    """Which rows are of another installation; refused when one cannot be read."""
    marks = (rows["lead"] >> 8) | (rows["epoch"] >> _EPOCH_BITS << 24).astype(np.uint32)
    versions = np.where(marks == NO_MARK, UNMARKED_VERSION, MARKED_VERSION)
    wrong = (rows["lead"] & 0xFF != versions) | (rows["serial"] < 1)
    if wrong.any():
        raise _refusal(rows[int(wrong.argmax())].tobytes())
    if installation is None:
        return np.zeros(len(rows), dtype=np.bool_)
    strange: npt.NDArray[np.bool_] = marks != installation.mark
    if installation.accepts_unmarked:
        strange &= marks != NO_MARK
    return strange


def _foreign(own: npt.NDArray[np.bool_], strangers: int = 0) -> Headers:
    epochs, producers, serials = (np.zeros(len(own), dtype=np.int64) for _ in range(3))
    return Headers(own, epochs, producers, serials, np.zeros(len(own), dtype=np.uint64), strangers)


def _concatenate(parts: list[Headers]) -> Headers:
    if not parts:
        return _foreign(np.zeros(0, dtype=np.bool_))
    if len(parts) == 1:
        return parts[0]
    return Headers(
        own=np.concatenate([part.own for part in parts]),
        epochs=np.concatenate([part.epochs for part in parts]),
        producers=np.concatenate([part.producers for part in parts]),
        serials=np.concatenate([part.serials for part in parts]),
        digests=np.concatenate([part.digests for part in parts]),
        strangers=sum(part.strangers for part in parts),
    )


def _refusal(data: bytes) -> Refused:
    """Says what is wrong with 32 bytes that are no header of this version."""
    version, first, _, epoch, serial, _ = _LAYOUT.unpack(data)
    if version not in (UNMARKED_VERSION, MARKED_VERSION):
        return Refused(
            f"a record has a {HEADER_NAME} header of version {version}; this program reads versions "
            f"{UNMARKED_VERSION} and {MARKED_VERSION}",
            why="Leaving such a record out could lose an instruction.",
            tries=["zerotail version    at every site; the readers must not be older than the writers"],
        )
    if version == UNMARKED_VERSION and any(first):
        return Refused(f"a {HEADER_NAME} header has mark {first.hex()}; version {version} has zeros there")
    if version == UNMARKED_VERSION and epoch > _LARGEST_EPOCH:
        return Refused(f"a {HEADER_NAME} header has epoch {epoch}; the largest is {_LARGEST_EPOCH}")
    if version == MARKED_VERSION and not any(first) and epoch <= _LARGEST_EPOCH:
        return Refused(f"a {HEADER_NAME} header of version {version} has no mark")
    return Refused(f"a {HEADER_NAME} header has serial {serial}; it must be 1 to {_LARGEST}")
