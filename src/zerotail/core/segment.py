"""The order of one segment in few bytes, as the journal stores it.

Producers present and their counts stand in the clear, so that vectors can be checked with SQL; only the
interleaving is encoded. The bytes are a tag and whichever of two forms is shorter:

packed   each record's producer, as its index among the producers present, in just enough bits for the largest
index;
         the first record in the lowest bits of the first byte. No bits at all for a single producer.
runs     one varint (7 bits a byte, low ones first) per run. Neighbouring runs differ in their producer, so
the step from
         one index to the next, around the circle, is 1 to k - 1; the varint is (count - 1) * (k - 1) + step -
         1. The first run has no neighbour: (count - 1) * k + index. With two producers only the lengths
         remain.

Random interleavings cost what they must, a bit per record for two producers; bursts cost a byte or two per
run.

1. Never more than the packed size plus the tag.
2. `decode_order` is the inverse of `encode_order`, and bytes that no order has are Broken, saying what is
   wrong.
3. Short segments take plain Python, long ones NumPy; both write and read the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from zerotail.core.identity import ProducerNumber
from zerotail.core.order import Numbers, Runs
from zerotail.errors import Broken

PACKED, RUNS = 0, 1
_TAG_BYTES = 1
_FEW_RECORDS = 64
"""Below this, calling NumPy costs more than the work."""
_LONGEST_VARINT = 9
"""In bytes: 63 bits, the range of Arrow's and the database's numbers."""


@dataclass(frozen=True, slots=True)
class SegmentOrder:
    """The order of one segment: who is in it by ascending number, how often, and the encoded interleaving.

    >>> order = encode_order(Runs.of([(1, 2), (2, 2), (1, 1)]))
    >>> order.producers, order.counts, order.encoded.hex()
    ((1, 2), (3, 2), '000c')
    >>> decode_order(order)
    Runs(1×2 2×2 1×1)
    """

    producers: tuple[ProducerNumber, ...]
    counts: tuple[int, ...]
    encoded: bytes

    @property
    def records(self) -> int:
        """How many records the segment holds."""
        return sum(self.counts)


def packed_bytes(records: int, producers: int) -> int:
    """How many bytes the packed form takes, without the tag."""
    return (records * _bits_for(producers) + 7) // 8


def encode_order(runs: Runs) -> SegmentOrder:
    """The runs of one segment, encoded."""
    if runs.records < _FEW_RECORDS:
        owners, lengths = runs.producers.tolist(), runs.counts.tolist()
        counts = _count(owners, lengths)
        encoded = _encode_few([*counts], owners, lengths)
    else:
        counts = runs.per_producer()
        encoded = _encode_many([*counts], runs)
    return SegmentOrder((*counts,), (*counts.values(),), encoded)


def decode_order(order: SegmentOrder) -> Runs:
    """The runs that were encoded; Broken if the bytes or the counts are not what an encoding gives."""
    _require_sound_counts(order)
    tag, data = order.encoded[0], order.encoded[_TAG_BYTES:]
    few = order.records < _FEW_RECORDS
    if tag == PACKED:
        expected = packed_bytes(order.records, len(order.producers))
        if len(data) != expected:
            what = "are cut short" if len(data) < expected else "go on behind the end"
            raise _broken(order, f"the packed bytes {what}, {len(data)} instead of {expected}")
        if not expected:
            return Runs.of(zip(order.producers, order.counts, strict=True))
        return _unpack_few(order, data) if few else _unpack_many(order, data)
    if tag == RUNS and len(order.producers) > 1:
        return _runs_of_few(order, data) if few else _runs_of_many(order, data)
    raise _broken(order, f"tag {tag} is unknown for {len(order.producers)} producers")


# Plain Python, for few records ------------------------------------------------------------------------------


def _count(owners: Sequence[int], lengths: Sequence[int]) -> dict[ProducerNumber, int]:
    counts: dict[ProducerNumber, int] = dict.fromkeys(map(ProducerNumber, sorted(owners)), 0)
    for owner, length in zip(owners, lengths, strict=True):
        counts[ProducerNumber(owner)] += length
    return counts


def _encode_few(producers: Sequence[int], owners: list[int], counts: list[int]) -> bytes:
    indexes = [producers.index(owner) for owner in owners]
    size = packed_bytes(sum(counts), len(producers))
    if len(counts) < size:  # a run takes a byte or more
        varints = b"".join(map(_varint, _run_values(indexes, counts, len(producers))))
        if len(varints) < size:
            return bytes([RUNS]) + varints
    bits = _bits_for(len(producers))
    packed = shift = 0
    for index, count in zip(indexes, counts, strict=True):
        for _ in range(count):
            packed |= index << shift
            shift += bits
    return bytes([PACKED]) + packed.to_bytes(size, "little")


def _run_values(indexes: list[int], counts: list[int], producers: int) -> list[int]:
    steps = [(after - before - 1) % producers for before, after in pairwise(indexes)]
    rest = [(count - 1) * (producers - 1) + step for count, step in zip(counts[1:], steps, strict=True)]
    return [(counts[0] - 1) * producers + indexes[0], *rest]


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(0x80 | value & 0x7F)
        value >>= 7
    data.append(value)
    return bytes(data)


def _unpack_few(order: SegmentOrder, data: bytes) -> Runs:
    bits = _bits_for(len(order.producers))
    packed = int.from_bytes(data, "little")
    indexes = [packed >> (bits * record) & ((1 << bits) - 1) for record in range(order.records)]
    _require_sound_indexes(order, max(indexes), padding=packed >> (bits * order.records))
    owners = [order.producers[index] for index in indexes]
    _require_equal_counts(order, _count(owners, [1] * len(owners)))
    return Runs.of_records(owners)


def _runs_of_few(order: SegmentOrder, data: bytes) -> Runs:
    values, value, length = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << (7 * length)
        length += 1
        if byte < 0x80:
            _require_sound_varint(order, length, byte)
            values.append(value)
            value = length = 0
    if length or not values:
        raise _broken(order, "the last run is cut short")
    producers = len(order.producers)
    first, index = divmod(values[0], producers)
    owners, counts = [order.producers[index]], [first + 1]
    for value in values[1:]:
        more, step = divmod(value, producers - 1)
        index = (index + step + 1) % producers
        owners.append(order.producers[index])
        counts.append(more + 1)
    _require_equal_counts(order, _count(owners, counts))
    return Runs(np.array(owners, dtype=np.int64), np.array(counts, dtype=np.int64))


# NumPy, for many --------------------------------------------------------------------------------------------


def _encode_many(producers: Sequence[int], runs: Runs) -> bytes:
    indexes = np.searchsorted(np.array(producers, dtype=np.int64), runs.producers)
    size = packed_bytes(runs.records, len(producers))
    if len(runs) < size:  # a run takes a byte or more
        values = (runs.counts - 1) * (len(producers) - 1)
        values[1:] += (np.diff(indexes) - 1) % len(producers)
        values[0] += runs.counts[0] - 1 + indexes[0]
        lengths = np.ones(len(values), dtype=np.int64)
        for longer in range(1, _LONGEST_VARINT):
            lengths += values >= 1 << (7 * longer)
        if int(lengths.sum()) < size:
            return bytes([RUNS]) + _varints(values, lengths)
    if not size:
        return bytes([PACKED])
    bits = _bits_for(len(producers))
    each = np.repeat(indexes.astype("<u4" if bits > 8 else "<u1"), runs.counts)
    by_byte = each.view(np.uint8).reshape(runs.records, each.itemsize)
    by_bit = by_byte if bits == 1 else np.unpackbits(by_byte, axis=1, count=bits, bitorder="little")
    return bytes([PACKED]) + np.packbits(by_bit, bitorder="little").tobytes()


def _varints(values: Numbers, lengths: Numbers) -> bytes:
    ends = np.cumsum(lengths)
    data = np.zeros(int(ends[-1]), dtype=np.uint8)
    for place in range(int(lengths.max())):
        has = lengths > place
        more = np.where(lengths[has] > place + 1, 0x80, 0)
        data[(ends - lengths)[has] + place] = (values[has] >> (7 * place)) & 0x7F | more
    return data.tobytes()


def _unpack_many(order: SegmentOrder, data: bytes) -> Runs:
    bits, records = _bits_for(len(order.producers)), order.records
    each = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    by_bit, padding = each[: records * bits].reshape(records, bits), each[records * bits :]
    indexes = np.zeros(records, dtype=np.int32)
    for bit in range(bits):
        indexes |= by_bit[:, bit].astype(np.int32) << bit
    _require_sound_indexes(order, int(indexes.max()), padding=int(padding.any()))
    return _counted(order, Runs.of_records(np.array(order.producers, dtype=np.int64)[indexes]))


def _runs_of_many(order: SegmentOrder, data: bytes) -> Runs:
    each = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(each < 0x80)
    if not len(ends) or ends[-1] != len(each) - 1:
        raise _broken(order, "the last run is cut short")
    lengths = np.diff(ends, prepend=-1)
    longest = int(lengths.max())
    padded = (lengths > 1) & (each[ends] == 0)
    _require_sound_varint(order, longest, last=0 if padded.any() else 1)
    values = np.zeros(len(ends), dtype=np.int64)
    for place in range(longest):
        has = lengths > place
        values[has] |= (each[(ends - lengths)[has] + 1 + place] & 0x7F).astype(np.int64) << (7 * place)
    producers = len(order.producers)
    counts, steps = np.divmod(values, producers - 1)
    counts[0], steps[0] = divmod(int(values[0]), producers)
    if counts.max() >= order.records:  # also keeps the sums below from running over
        raise _broken(order, f"a run has {int(counts.max()) + 1} records")
    steps[1:] += 1
    owners = np.array(order.producers, dtype=np.int64)[np.cumsum(steps) % producers]
    return _counted(order, Runs(owners, counts + 1))


def _counted(order: SegmentOrder, runs: Runs) -> Runs:
    _require_equal_counts(order, runs.per_producer())
    return runs


# What must hold ---------------------------------------------------------------------------------------------


def _bits_for(producers: int) -> int:
    return max(producers - 1, 0).bit_length()


def _require_sound_counts(order: SegmentOrder) -> None:
    if len(order.producers) != len(order.counts):
        raise _broken(order, f"it has {len(order.producers)} producers and {len(order.counts)} counts")
    if any(before >= after for before, after in pairwise(order.producers)):
        raise _broken(order, "its producers do not ascend")
    if any(count < 1 for count in order.counts):
        raise _broken(order, "a count is below 1")
    if not order.encoded:
        raise _broken(order, "the encoded bytes are empty")


def _require_sound_indexes(order: SegmentOrder, largest: int, padding: int) -> None:
    if largest >= len(order.producers):
        raise _broken(order, f"a record has producer index {largest}")
    if padding:
        raise _broken(order, "the bits behind the last record are not zero")


def _require_sound_varint(order: SegmentOrder, length: int, last: int) -> None:
    if length > _LONGEST_VARINT:
        raise _broken(order, f"a run takes {length} bytes; {_LONGEST_VARINT} is the most")
    if length > 1 and last == 0:
        raise _broken(order, "a run takes more bytes than it needs")


def _require_equal_counts(order: SegmentOrder, found: dict[ProducerNumber, int]) -> None:
    if found != dict(zip(order.producers, order.counts, strict=True)):
        raise _broken(order, f"the encoded counts are {found}")


def _broken(order: SegmentOrder, what: str) -> Broken:
    counts = dict(zip(order.producers, order.counts, strict=False))
    return Broken(
        f"a segment's order cannot be decoded: {what} (counts in the clear {counts})",
        why="Without its order the segment cannot be replayed.",
        tries=["zerotail journal verify", "zerotail journal compare"],
    )
