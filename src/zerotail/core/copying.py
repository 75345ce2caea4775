"""Where a mirror goes on in one partition, decided from what the target holds and what the source still has.

Every transaction of a mirror holds the copies and, with them, the **place**: the next offset of the source, the last
one that was copied, the id of the source's topic, and who wrote it. Either both are at the target or neither is. When
a mirror starts it ends the transactions of whoever wrote before (the transactional id is the fence), then reads the
place and the last provenance at the end of the partition. The end is the truth, the place is what it cannot say: how
far the source was read where nothing had to be copied, and how far a log had come of which retention has left
nothing.

1. The end and the place agree: go on at the place.
2. The end has more than the place (somebody set it back): go on behind the end. Nothing is copied twice.
3. The end has less (the target lost records that it had acknowledged): go on behind the end, and say so.
4. The source is another log than the one that was copied, ends before the place, or begins behind it: stop this
   partition and say what is missing. Nothing is skipped unless somebody accepts it by name.
5. The place is gone and the end does not say where it was, though something was written there: stop as well. Beginning
   anew would copy everything twice (E24).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from zerotail.core.identity import Offset

NOTHING = Offset(-1)
_FIELDS = 5
_VERSION = "1"


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """One start of a mirror; the higher one wins. The token decides between two that began at the same time."""

    generation: int
    token: str


@dataclass(frozen=True, slots=True)
class Place:
    """How far one partition has been copied, as the target keeps it beside the copies."""

    next_offset: Offset
    last_copied: Offset
    """`NOTHING` when nothing had to be copied so far."""
    topic_id: str
    run: Run

    def metadata(self) -> str:
        """Everything but the next offset, as Kafka keeps it with a committed offset."""
        return f"{_VERSION} {self.topic_id} {self.last_copied} {self.run.generation} {self.run.token}"


def read_place(next_offset: int, metadata: str) -> Place | None:
    """The place behind a committed offset; None when somebody else has committed it."""
    fields = metadata.split(" ")
    if len(fields) != _FIELDS or fields[0] != _VERSION or not fields[3].isdigit():
        return None
    try:
        last = Offset(int(fields[2]))
    except ValueError:
        return None
    return Place(Offset(next_offset), last, fields[1], Run(int(fields[3]), fields[4]))


@dataclass(frozen=True, slots=True)
class SourceLog:
    """A partition of the source as it is now."""

    topic_id: str
    first_offset: Offset
    next_offset: Offset


@dataclass(frozen=True, slots=True)
class TargetEnd:
    """What lies at the end of the target's partition."""

    last_copied: Offset | None
    """The last offset of the source among the copies; None when no copy was found."""
    topic_id: str | None
    """Of the log that it was copied from."""
    is_whole: bool
    """Whether everything that was ever written there was looked at."""


class Kind(StrEnum):
    """What can be wrong with a partition; the word is what an operator types to accept it."""

    RECREATED = "recreated"
    TRUNCATED = "truncated"
    EXPIRED = "expired"
    DELETED = "deleted"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Go:
    """Copy from here; `note` says what was found out of order and is mended by going on here."""

    offset: Offset
    last_copied: Offset
    note: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """Nobody may go on without a decision."""

    kind: Kind
    sentence: str


def plan_start(
    place: Place | None, end: TargetEnd, source: SourceLog, accepted: frozenset[Kind] = frozenset()
) -> Go | Stop:
    """Where to go on, or why not; what was `accepted` is gone past."""
    known = place.topic_id if place else end.topic_id
    if known is not None and known != source.topic_id:
        if Kind.RECREATED not in accepted:
            return _recreated(place, end)
        return Go(source.first_offset, NOTHING, "the source was made anew, which was accepted")
    if place is None and end.last_copied is None and not end.is_whole and Kind.FORGOTTEN not in accepted:
        return Stop(
            Kind.FORGOTTEN,
            "the place is gone (Kafka forgets it after days of rest), and at the target's end lies no copy that says "
            "how far the source was copied; accepted, it is copied again from its beginning",
        )
    go = _behind_the_end(place, end, source)
    if go.offset > source.next_offset:
        if Kind.TRUNCATED not in accepted:
            return Stop(
                Kind.TRUNCATED,
                f"the source ends at {source.next_offset}, and was copied up to {go.offset}: it lost records, and new "
                "ones have taken their offsets",
            )
        taken = f"what it holds up to {source.next_offset - 1} is taken for copied"
        return Go(source.next_offset, go.last_copied, f"the source was cut, which was accepted: {taken}")
    if go.offset < source.first_offset:
        if Kind.EXPIRED not in accepted:
            missing = source.first_offset - go.offset
            return Stop(
                Kind.EXPIRED,
                f"the source begins at {source.first_offset}, and was copied up to {go.offset}: {missing} offsets were "
                "deleted before they were copied",
            )
        return Go(source.first_offset, go.last_copied, f"offsets {go.offset} to {source.first_offset - 1} are left out")
    return go


def _behind_the_end(place: Place | None, end: TargetEnd, source: SourceLog) -> Go:
    """What the target says, whatever has become of the source."""
    if place is None:
        if end.last_copied is None:
            note = "" if end.is_whole else "copied again from its beginning, which was accepted"
            return Go(source.first_offset, NOTHING, note)
        return Go(Offset(end.last_copied + 1), end.last_copied)
    if end.last_copied == place.last_copied:
        return Go(place.next_offset, place.last_copied)
    if end.last_copied is None:
        if not end.is_whole or place.last_copied == NOTHING:
            return Go(place.next_offset, place.last_copied)
        return Go(source.first_offset, NOTHING, f"the target has lost everything up to offset {place.last_copied}")
    if end.last_copied < place.last_copied:
        lost = f"the target has lost what was copied behind offset {end.last_copied}, up to {place.last_copied}"
        return Go(Offset(end.last_copied + 1), end.last_copied, lost)
    return Go(max(place.next_offset, Offset(end.last_copied + 1)), end.last_copied, "the place was set back")


def _recreated(place: Place | None, end: TargetEnd) -> Stop:
    reached = place.next_offset if place else Offset((end.last_copied or 0) + 1)
    return Stop(
        Kind.RECREATED,
        f"the source's topic was deleted and made again; the old one was copied up to {reached}, and the offsets of "
        "the new one begin anew",
    )
