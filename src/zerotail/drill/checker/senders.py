"""Who may send, and when: one sender at a time, in an epoch of its own, behind the gate (S6, S7, S8, S18).

The events of sending stay in their merged order here, since each rule asks what had happened *before*
something arrived at the receiver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from zerotail.core.identity import ChannelName, EmissionNumber, Epoch, Incarnation, PartitionNumber, SiteName
from zerotail.drill.checker.facts import Facts, Stream
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import (
    ChannelClaimed,
    EmissionAttempted,
    EpochOpened,
    Mode,
    ModeChanged,
    Released,
    ReplicationChanged,
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
    lineage = frozenset(facts.active.epochs) if facts.active else frozenset()
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
            if lineage and event.epoch not in lineage:
                yield Finding(f"epoch {event.epoch} sent and is not in the final lineage", (event,))


def _claim_out_of_order(
    claim: ChannelClaimed, opened: EpochOpened | None, highest: _Highest
) -> Iterator[Finding]:
    if opened is None:
        yield Finding(f"epoch {claim.epoch} was claimed at {claim.channel} and never opened before", (claim,))
    elif opened.site != claim.site:
        yield Finding(f"{claim.site} claimed epoch {claim.epoch} of {opened.site}", (opened, claim))
    held = highest.of(claim.channel, claim.partition)
    if held is not None and _rank(claim) < _rank(held):
        yield Finding(f"{_sender_of(claim)} claimed {claim.channel} after a newer sender", (held, claim))


def _sender(event: ChannelClaimed | EmissionAttempted | Released) -> _Sender:
    return (event.site, event.epoch, event.incarnation)


def durable_before_sent(facts: Facts) -> Iterator[Finding]:
    """S8: whatever arrives was released before by the same sender, by a true gate or in an exposed epoch."""
    modes: dict[Epoch, Mode] = {}
    released: dict[tuple[Stream, _Sender], int] = {}
    newest: dict[tuple[Stream, _Sender], Released] = {}
    for event in facts.sending:
        if type(event) is EmissionAttempted:
            stream = (event.channel, event.partition, event.target_partition)
            key = (stream, (event.site, event.epoch, event.incarnation))
            if released.get(key, 0) < event.number:
                release = newest.get(key)
                says = f"emission {event.number} of {event.channel} was sent before its gate"
                yield Finding(says, (event,) if release is None else (release, event))
        elif type(event) is Released:
            stream = (event.channel, event.partition, event.target_partition)
            key = (stream, (event.site, event.epoch, event.incarnation))
            newest[key] = event
            if modes.get(event.epoch) == "exposed" if event.by == "exposure" else _gate_holds(event):
                held = released.get(key, 0)
                released[key] = max(held, _covered(facts, stream, event, held))
        elif type(event) is EpochOpened or type(event) is ModeChanged:
            modes[event.epoch] = event.mode


def _gate_holds(release: Released) -> bool:
    return (
        release.other_in_recovery
        and release.other_timeline == release.timeline
        and release.other_epoch == release.epoch
        and release.other_lsn_flushed >= release.lsn_wanted
    )


def _covered(facts: Facts, stream: Stream, release: Released, held: int) -> int:
    """The last number that a release covers, which is below `through` if the gate was asked for too little.

    Looked at from the top: a segment whose place in the log is unknown stands behind the ones before it.
    """
    covered = int(release.through)
    if release.by == "exposure":
        return covered
    owed = facts.reference.get(stream, {})
    for number in range(covered, held, -1):
        _, segment = owed.get(EmissionNumber(number), ("", None))
        if segment is None or segment.epoch != release.epoch or 0 < segment.lsn <= release.lsn_wanted:
            break
        if segment.lsn:
            covered = number - 1
    return covered


def no_silent_exposure(facts: Facts) -> Iterator[Finding]:
    """S18: exposed only after a takeover or by an operator; no gate vouches for what was never sent."""
    modes: dict[Epoch, EpochOpened | ModeChanged] = {}
    away: dict[SiteName, ReplicationChanged] = {}
    for event in facts.sending:
        if type(event) is Released:
            if event.by == "exposure":
                row = modes.get(event.epoch)
                if row is None or row.mode != "exposed":
                    says = f"{event.site} released by exposure, and epoch {event.epoch} is not exposed"
                    yield Finding(says, (event,) if row is None else (row, event))
            elif event.site in away:
                lost = away[event.site]
                if lost.lsn_sent is None or event.other_lsn_flushed > lost.lsn_sent:
                    says = f"the gate vouched for {event.other_lsn_flushed} while replication was away"
                    yield Finding(says, (lost, event))
        elif type(event) is EpochOpened or type(event) is ModeChanged:
            modes[event.epoch] = event
            by_takeover = type(event) is EpochOpened and event.cause == "takeover"
            if event.mode == "exposed" and not (event.operator or by_takeover):
                says = f"epoch {event.epoch} is exposed and no operator said so"
                yield Finding(says, (event,))
        elif type(event) is ReplicationChanged:
            if event.in_force:
                away.pop(event.site, None)
            else:
                away[event.site] = event
