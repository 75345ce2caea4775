"""Who may send: one sender at a time, in an epoch of its own (S6, S7).

The events of sending stay in their merged order here, since each rule asks what had happened *before*
something arrived at the receiver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from zerotail.core.identity import ChannelName, Epoch, Incarnation, PartitionNumber, SiteName
from zerotail.drill.checker.facts import Facts, Stream
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import (
    ChannelClaimed,
    EmissionAttempted,
    EpochOpened,
)

_Sender = tuple[SiteName, Epoch, Incarnation]


def one_sender(facts: Facts) -> Iterator[Finding]:
    """S6: an older sender never comes through at R2; one number means the same bytes everywhere."""
    yield from _older_sender_came_through(facts)
    first_of: dict[Stream, dict[int, EmissionAttempted]] = defaultdict(dict)
    for attempt in facts.attempts:
        if attempt.answer != "older-epoch":
            seen = first_of[attempt.channel, attempt.partition, attempt.target_partition]
            first = seen.setdefault(attempt.number, attempt)
            if first.digest != attempt.digest:
                says = f"emission {attempt.number} of {attempt.channel} arrived with two different contents"
                yield Finding(says, (first, attempt))


def _older_sender_came_through(facts: Facts) -> Iterator[Finding]:
    fenced = _fenced_channels(facts)
    if not fenced:
        return
    highest_claim = _Highest()
    newest: dict[Stream, EmissionAttempted] = {}
    for event in facts.sending:
        if type(event) is ChannelClaimed and event.answer == "accepted":
            highest_claim.take(event)
        elif type(event) is EmissionAttempted and event.answer == "accepted" and event.channel in fenced:
            stream = (event.channel, event.partition, event.target_partition)
            claim = highest_claim.of(event.channel, event.partition)
            before = newest.get(stream)
            if before is not None and _rank(event) < _rank(before):
                yield Finding(f"{_sender_of(event)} sent after a newer sender", (before, event))
            elif claim is not None and _rank(event) < _rank(claim):
                yield Finding(f"{_sender_of(event)} sent after a newer sender had claimed", (claim, event))
            else:
                newest[stream] = event


class _Highest:
    """The highest accepted claim of each channel and partition."""

    def __init__(self) -> None:
        self._claims: dict[tuple[ChannelName, PartitionNumber | None], ChannelClaimed] = {}

    def take(self, claim: ChannelClaimed) -> None:
        held = self._claims.get((claim.channel, claim.partition))
        if held is None or _rank(claim) >= _rank(held):
            self._claims[claim.channel, claim.partition] = claim

    def of(self, channel: ChannelName, partition: PartitionNumber | None) -> ChannelClaimed | None:
        claims = [self._claims.get((channel, p)) for p in (None, partition)]
        return max((claim for claim in claims if claim is not None), key=_rank, default=None)


def _rank(event: ChannelClaimed | EmissionAttempted) -> tuple[Epoch, Incarnation]:
    return (event.epoch, event.incarnation)


def _sender_of(event: EmissionAttempted | ChannelClaimed) -> str:
    return f"{event.site} in epoch {event.epoch}.{event.incarnation}"


def _fenced_channels(facts: Facts) -> frozenset[ChannelName]:
    return frozenset(declared.channel for declared in facts.channels if declared.receiver == "R2")


def epoch_discipline(facts: Facts) -> Iterator[Finding]:
    """S7: an epoch is opened once, claimed by its site before it sends, and a row in the end."""
    fenced = _fenced_channels(facts)
    opened: dict[Epoch, EpochOpened] = {}
    claimed: set[tuple[ChannelName, PartitionNumber | None, _Sender]] = set()
    highest_claim = _Highest()
    for event in facts.sending:
        if type(event) is EpochOpened:
            first = opened.setdefault(event.epoch, event)
            if (first.site, first.mode, first.cuts) != (event.site, event.mode, event.cuts):
                yield Finding(f"epoch {event.epoch} was opened twice", (first, event))
        elif type(event) is ChannelClaimed and event.answer == "accepted" and event.channel in fenced:
            yield from _claim_out_of_order(event, opened.get(event.epoch), highest_claim)
            claimed.add((event.channel, event.partition, _sender(event)))
            highest_claim.take(event)
        elif type(event) is EmissionAttempted and event.answer == "accepted" and event.channel in fenced:
            sender = _sender(event)
            if not {(event.channel, event.partition, sender), (event.channel, None, sender)} & claimed:
                yield Finding(f"{_sender_of(event)} sent on {event.channel} without a claim", (event,))
            if facts.lineage and event.epoch not in facts.lineage:
                yield Finding(f"epoch {event.epoch} sent and is not in the final lineage", (event,))


def _claim_out_of_order(claim: ChannelClaimed, opened: EpochOpened | None, highest: _Highest) -> Iterator[Finding]:
    if opened is None:
        yield Finding(f"epoch {claim.epoch} was claimed at {claim.channel} and never opened before", (claim,))
    elif opened.site != claim.site:
        yield Finding(f"{claim.site} claimed epoch {claim.epoch} of {opened.site}", (opened, claim))
    held = highest.of(claim.channel, claim.partition)
    if held is not None and _rank(claim) < _rank(held):
        yield Finding(f"{_sender_of(claim)} claimed {claim.channel} after a newer sender", (held, claim))


def _sender(event: ChannelClaimed | EmissionAttempted) -> _Sender:
    return (event.site, event.epoch, event.incarnation)
