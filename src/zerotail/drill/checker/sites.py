"""Two sites, one history: same journal, chain and state, and no row behind a fence (S9, S10, S11, S15)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import pairwise, zip_longest
from typing import TypeAlias

import msgspec

from zerotail.core.identity import Epoch, Position, SegmentNumber
from zerotail.drill.checker.facts import Facts, Place
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import Cut, EpochOpened, FinalInstruction, FinalSegment, FinalSite, FinalState

ContentOf: TypeAlias = Callable[[FinalSegment], bytes]
"""The bytes of a segment that its chain covers."""

FIRST_PREVIOUS = "00" * 32


def canonical_content(segment: FinalSegment) -> bytes:
    """The bytes that `docs/verdicts.md` says the chain covers."""
    return msgspec.json.encode(
        (
            segment.stage,
            segment.partition,
            segment.segment,
            segment.epoch,
            segment.first_position,
            segment.decided_at,
            segment.version,
            segment.runs,
            segment.inputs,
            segment.skipped,
            segment.emissions,
        )
    )


def prefix_agreement(facts: Facts) -> Iterator[Finding]:
    """S9: the standby has the same journal and rows, a deposed site the same journal up to the cut."""
    if len(facts.active_sites) > 1:
        yield Finding("two sites ended active", tuple(facts.active_sites[:2]))
    if facts.active is None:
        return
    for site in facts.sites:
        if site.role in ("standby", "deposed"):
            yield from _different_journal(facts, site)
        if site.role == "standby":
            yield from _different_rows(facts, [row for row in facts.instructions if row.site == site.site])
    for place in sorted({*facts.journal, *((cut.stage, cut.partition) for e in facts.opened for cut in e.cuts)}):
        yield from _cut_not_in_journal(facts, place)


def _different_journal(facts: Facts, site: FinalSite) -> Iterator[Finding]:
    journal = facts.journals.get(site.site, {})
    for place in sorted({*facts.journal, *journal}):
        ours, theirs = facts.journal.get(place, []), journal.get(place, [])
        if site.role == "deposed":
            until = _fork_allowed_behind(facts, place, frozenset(site.epochs))
            ours = [segment for segment in ours if segment.segment <= until]
            theirs = [segment for segment in theirs if segment.segment <= until]
        yield from _first_difference(ours, theirs)


def _fork_allowed_behind(facts: Facts, place: Place, known_there: frozenset[Epoch]) -> float:
    """The cut of the first epoch that a deposed site has not heard of."""
    cuts = [cut.segment for opened, cut in _cuts(facts, place) if opened.epoch not in known_there]
    return min(cuts, default=float("inf"))


def _cuts(facts: Facts, place: Place) -> Iterator[tuple[EpochOpened, Cut]]:
    """Where each epoch of the final lineage began at a place; one that does not say began at nothing."""
    for opened in facts.opened:
        if opened.epoch in facts.lineage:
            named = (cut for cut in opened.cuts if (cut.stage, cut.partition) == place)
            yield opened, next(named, Cut(*place, SegmentNumber(0), Position(0)))


def _same_segment(one: FinalSegment, other: FinalSegment) -> bool:
    return _order_of(one) == _order_of(other)


def _order_of(s: FinalSegment) -> tuple[object, ...]:
    """What two sites must have alike: all but the emissions, which are found by running the handler."""
    told = (s.segment, s.epoch, s.first_position, s.decided_at, s.version, s.runs, s.inputs, s.skipped)
    return (*told, s.chain)


def _first_difference(ours: list[FinalSegment], theirs: list[FinalSegment]) -> Iterator[Finding]:
    for one, other in zip_longest(ours, theirs):
        if one is None or other is None:
            only = one or other
            yield Finding(f"segment {only.segment} of {only.stage} is at {only.site} only", (only,))
        elif not _same_segment(one, other):
            says = f"segment {one.segment} of {one.stage} differs between {one.site} and {other.site}"
            yield Finding(says, (one, other))
        else:
            continue
        return


def _different_rows(facts: Facts, theirs: list[FinalInstruction]) -> Iterator[Finding]:
    ours, others = _rows_by_content(facts.rows), _rows_by_content(theirs)
    same_serial = {(row.producer, row.partition, row.serial): row for row in theirs}
    for content, row in ours.items():
        other = same_serial.get((row.producer, row.partition, row.serial))
        if content in others:
            continue
        if other is None:
            yield Finding(f"instruction {row.serial} of {row.producer} is at {row.site} only", (row,))
        else:
            says = f"instruction {row.serial} of {row.producer} differs between {row.site} and {other.site}"
            yield Finding(says, (row, other))
    for content, row in others.items():
        if content not in ours:
            yield Finding(f"instruction {row.serial} of {row.producer} at {row.site} is not active's", (row,))


def _rows_by_content(rows: list[FinalInstruction]) -> dict[tuple[str, int, int, str, str], FinalInstruction]:
    return {(row.producer, row.partition, row.serial, row.id, row.digest): row for row in rows}


def _cut_not_in_journal(facts: Facts, place: Place) -> Iterator[Finding]:
    segments = facts.journal.get(place, [])
    for opened, cut in _cuts(facts, place):
        if (cut.segment, cut.next_position) == (0, 0) or any(_ends_at(s, cut) for s in segments):
            continue
        there = [s for s in segments if s.segment == cut.segment]
        says = f"epoch {opened.epoch} began behind segment {cut.segment} of {cut.stage}, another one now"
        yield Finding(says, (opened, *there[:1]))


def _ends_at(segment: FinalSegment, cut: Cut) -> bool:
    next_position = segment.first_position + len(segment.inputs)
    same_chain = not cut.chain or segment.chain == cut.chain
    return (segment.segment, next_position) == (cut.segment, cut.next_position) and same_chain


def hash_chain(facts: Facts, content_of: ContentOf = canonical_content) -> Iterator[Finding]:
    """S10: content, previous and chain of each segment are as computed again, at every site."""
    for site, places in facts.journals.items():
        for segments in places.values():
            before: FinalSegment | None = None
            for segment in segments:
                if segment.chain or segment.content:
                    yield from _broken_link(before, segment, content_of, f"segment {segment.segment} at {site}")
                before = segment


def _broken_link(
    before: FinalSegment | None, segment: FinalSegment, content_of: ContentOf, name: str
) -> Iterator[Finding]:
    content = hashlib.sha256(content_of(segment)).digest()
    if content.hex() != segment.content:
        yield Finding(f"{name} is not what was hashed when it was written", (segment,))
    previous = before.chain if before else FIRST_PREVIOUS
    if segment.previous != previous:
        yield Finding(f"{name} does not follow the one before it", (before, segment) if before else (segment,))
    try:
        link = bytes.fromhex(segment.previous)
    except ValueError:
        link = b""
    if hashlib.sha256(link + content).hexdigest() != segment.chain:
        yield Finding(f"{name} has a chain hash that does not fit", (segment,))


def same_state(facts: Facts) -> Iterator[Finding]:
    """S11: stored or replayed, here or there, a segment leaves the same state and the same emissions."""
    first_state: dict[tuple[Place, SegmentNumber], FinalState] = {}
    for state in facts.states:
        first = first_state.setdefault(((state.stage, state.partition), state.segment), state)
        if first.digest != state.digest:
            where = f"{state.stage}, partition {state.partition}, segment {state.segment}"
            yield Finding(f"the state behind {where} differs", (first, state))
    for site, places in facts.journals.items():
        if facts.active is None or site == facts.active.site:
            continue
        for place, segments in places.items():
            for one, other in zip(facts.journal.get(place, []), segments, strict=False):
                if one.emissions != other.emissions and _same_segment(one, other):
                    says = f"segment {one.segment} of {one.stage} emits something else at {other.site}"
                    yield Finding(says, (one, other))


def fence_is_final(facts: Facts) -> Iterator[Finding]:
    """S15: epochs never fall along the journal, and nothing older stands behind a cut."""
    for segments in facts.journal.values():
        for before, after in pairwise(segments):
            if after.epoch < before.epoch:
                says = f"segment {after.segment} is of epoch {after.epoch}, behind one of epoch {before.epoch}"
                yield Finding(says, (before, after))
    for place, segments in facts.journal.items():
        for opened, cut in _cuts(facts, place):
            for segment in segments:
                if segment.segment > cut.segment and segment.epoch < opened.epoch:
                    says = f"segment {segment.segment} joined behind the fence of epoch {opened.epoch}"
                    yield Finding(says, (opened, segment))
                elif segment.segment <= cut.segment and segment.epoch >= opened.epoch:
                    says = f"segment {segment.segment} is of an epoch that began behind it"
                    yield Finding(says, (opened, segment))
