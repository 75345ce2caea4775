"""What tasks tell their driver, by msgspec: what arrives can be nothing but a value of the kind that is expected (E26).

A pickle would run whatever code an executor, or somebody who speaks in its place, puts into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from zerotail.errors import Broken, Misused, Refused, Unavailable, Unfinished, ZerotailError
from zerotail.flow.stage import Taken
from zerotail.ports import End

T = TypeVar("T")
_KINDS = {kind.__name__: kind for kind in (Broken, Misused, Refused, Unavailable, Unfinished, ZerotailError)}


class Said(msgspec.Struct, frozen=True):
    """An error, as it travels."""

    kind: Literal["Broken", "Misused", "Refused", "Unavailable", "Unfinished", "ZerotailError"]
    message: str
    code: str
    why: str
    tries: tuple[str, ...]


class StageResult(msgspec.Struct, frozen=True):
    """What became of a batch of one partition; nothing of all that when the partition is not known yet."""

    taken: Taken | None = None
    end: End | None = None
    error: Said | None = None
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Slow:
    """The handler is at one record for longer than others can wait; nothing of the batch was taken."""


Outcome = Taken | End | ZerotailError | Slow | None
"""Of one task of a stage; None says that the partition is not known yet."""


def pack(value: object) -> bytes:
    """A value that `unpack` gives back."""
    return msgspec.msgpack.encode(value)


def unpack(data: bytes, kind: type[T]) -> T:
    """The value; `Broken` when it is none of this kind."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise Broken(f"a task of Spark answered with something that is no {kind.__name__}: {error}.") from error


def pack_outcome(outcome: Outcome) -> bytes:
    """What became of a batch."""
    if isinstance(outcome, Taken):
        return pack(StageResult(taken=outcome))
    if isinstance(outcome, End):
        return pack(StageResult(end=outcome))
    if isinstance(outcome, Slow):
        return pack(StageResult(slow=True))
    return pack(StageResult(error=None if outcome is None else _said(outcome)))


def unpack_outcome(data: bytes) -> Outcome:
    """What became of a batch, as its task said."""
    result = unpack(data, StageResult)
    if result.error is not None:
        said = result.error
        return _KINDS[said.kind](said.message, code=said.code, why=said.why, tries=said.tries)
    return Slow() if result.slow else result.taken or result.end


def _said(error: ZerotailError) -> Said:
    kind = next(base.__name__ for base in type(error).__mro__ if base.__name__ in _KINDS)
    return Said(kind, error.message, error.code, error.why, error.tries)  # type: ignore[arg-type]
