"""A result in a file, with a stamp for each run that has part in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from zerotail.bench.stamp import Stamp, told
from zerotail.errors import Misused

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stored(Generic[T]):
    """What the file holds."""

    stamps: tuple[Stamp, ...]
    """One for each run, the oldest first."""
    result: T


def join(earlier: tuple[Stamp, ...], stamp: Stamp) -> tuple[Stamp, ...]:
    """The stamps of a result that a new run has joined; a run of the same command has measured all of it again."""
    return (*(one for one in earlier if one.command != stamp.command), stamp)


def read_stored(path: Path, kind: type[T]) -> Stored[T]:
    """What was stored; `Misused` where the file holds something else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Stored[kind])  # type: ignore[valid-type]
    except (OSError, msgspec.MsgspecError) as error:
        raise Misused(f"{path} holds no result of this benchmark: {error}.", code="ZT118") from error


def write_stored(path: Path, stored: Stored[T]) -> None:
    """Store it; a reader finds the old file or the new one, and never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(stored)) + b"\n")
    new.replace(path)


def told_stamps(stored: Stored[T]) -> Iterator[str]:
    """The lines below the heading of a section."""
    mark = "- " if len(stored.stamps) > 1 else ""
    for one in stored.stamps:
        yield mark + told(one)
