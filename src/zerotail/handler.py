"""What a developer writes, and what it is given: plain functions over records, in order, one partition at a
time.

A handler is applied again at the other site, so it may depend on nothing but the record, the state it named
and what it was given: `given.now`, `given.random` and `given.uuid` are derived from the segment and give
the same answers there.
"""

from __future__ import annotations

import random
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import msgspec

from zerotail.core.emission import LaneKey
from zerotail.core.identity import ChannelName, PartitionNumber, Position, ProducerNumber, Serial
from zerotail.errors import Misused

Value = Any
"""Whatever JSON can say."""

_LONGEST_REASON = 500
_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.decode


class Record(msgspec.Struct, frozen=True, gc=False):
    """An instruction, or a message of an earlier stage, as the handler sees it."""

    producer: ProducerNumber
    serial: Serial
    position: Position
    value: Value


class Emission(msgspec.Struct, frozen=True, gc=False):
    """A message owed to the outside. `key` chooses the partition of a channel that is a topic."""

    channel: str
    value: Value
    key: str = ""

    def target(self, partitions: int) -> PartitionNumber:
        """The partition of a topic with so many partitions."""
        return PartitionNumber(crc32(self.key.encode()) % partitions if partitions > 1 else 0)


class Given:
    """What a handler may know beside record and state: the same at every replay."""

    __slots__ = ("_chain", "_decided_at", "_position", "_source")

    def __init__(self, decided_at: int, chain: bytes, position: Position) -> None:
        self._decided_at = decided_at
        self._chain = chain
        self._position = position
        self._source: random.Random | None = None

    @property
    def now(self) -> datetime:
        """The time of the segment; it never falls."""
        return _EPOCH_START + timedelta(microseconds=self._decided_at)

    @property
    def random(self) -> random.Random:
        """A source of numbers that is seeded by the place of this record in the order."""
        if self._source is None:
            seed = sha256(self._chain + self._position.to_bytes(8, "little")).digest()
            self._source = random.Random(seed)  # noqa: S311 - repeatable on purpose
        return self._source

    def uuid(self) -> uuid.UUID:
        """An identifier that nobody else gets, and that a replay gets again."""
        return uuid.UUID(int=self.random.getrandbits(128), version=4)


class State(MutableMapping[str, Value]):
    """The values under the keys that the handler named for a batch; nothing else can be seen or changed.

    Whatever a value holds when the batch ends is stored, also when it was changed in place.
    """

    __slots__ = ("_allowed", "_stored", "_values")

    def __init__(self, stored: Mapping[str, bytes]) -> None:
        self._stored = stored
        self._values: dict[str, Value] = {key: _decode(value) for key, value in stored.items()}
        self._allowed: Sequence[str] = ()

    def allow(self, keys: Sequence[str]) -> None:
        """Name the keys of the record that is applied next."""
        self._allowed = keys

    def _require(self, key: str) -> None:
        if key not in self._allowed:
            raise Misused(
                f"the handler used state key {key!r}, which its keys() did not name for this record",
                code="ZT701",
                why="State is loaded and stored in bulk by those names; what is not named would be lost.",
            )

    def __getitem__(self, key: str) -> Value:
        self._require(key)
        return self._values[key]

    def get(self, key: str, default: Value = None) -> Value:
        """The value under a key, or `default`."""
        self._require(key)
        return self._values.get(key, default)

    def __setitem__(self, key: str, value: Value) -> None:
        self._require(key)
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        self._require(key)
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key in sorted(self._allowed) if key in self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def changes(self) -> dict[str, bytes | None]:
        """What differs from what was loaded; None means removed."""
        changed: dict[str, bytes | None] = {}
        for key, value in self._values.items():
            encoded = _encode(value)
            if encoded != self._stored.get(key):
                changed[key] = encoded
        for key in self._stored:
            if key not in self._values:
                changed[key] = None
        return changed


class Handler(Protocol):
    """A stage's rule."""

    def keys(self, record: Record) -> list[str]:
        """The state keys that `apply` may touch for this record."""
        ...

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        """Apply one record, and say what is owed to the outside because of it."""
        ...


def encode_value(value: Value) -> bytes:
    """The bytes of a value; equal values give equal bytes, whatever order a mapping was built in."""
    return _encode(value)


def decode_value(encoded: bytes) -> Value:
    """The value of bytes made by `encode_value`, or of any JSON text."""
    return _decode(encoded)


class Interruption(BaseException):
    """Ends somebody's code from outside, and is not taken for an error of that code."""


NOT_ITS_OWN = (Interruption, KeyboardInterrupt)
"""What comes up inside somebody's code and is not its own. Whatever else it raises is its fault, `SystemExit` too."""


class FailedError(Exception):
    """The handler raised; `place` is that of the record among those that it was given."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place


def apply_in_order(
    handler: Handler,
    records: Sequence[Record],
    state: State,
    keys: Sequence[Sequence[str]],
    decided_at: int,
    chain: bytes,
    partitions_of: Callable[[str], int],
) -> dict[LaneKey, list[bytes]]:
    """Run a handler over records; the messages it owes on each lane. `FailedError` names the record it fails at."""
    said: dict[LaneKey, list[bytes]] = {}
    place = -1
    try:
        for record, allowed in zip(records, keys, strict=True):
            place += 1
            state.allow(allowed)
            for emission in handler.apply(record, state, Given(decided_at, chain, record.position)):
                lane = (ChannelName(emission.channel), emission.target(partitions_of(emission.channel)))
                encoded = _encode(emission.value)
                if lane in said:
                    said[lane].append(encoded)
                else:
                    said[lane] = [encoded]
    except NOT_ITS_OWN:
        raise
    except BaseException as error:
        raise FailedError(place, describe(error)) from error
    return said


def describe(error: BaseException) -> str:
    """An error of somebody's code in one line: what it is, what it says, and where it was raised."""
    steps = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(steps[-1].filename).name}:{steps[-1].lineno}" if steps else ""
    try:
        said = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the text of an error is somebody's code, too
        said = "(its text cannot be read)"
    return f"{type(error).__name__}: {printable(said)[:_LONGEST_REASON]}{where}"


def printable(text: str) -> str:
    """A text that a database can hold and a terminal can show: whatever is no plain sign is written as its number."""
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)
