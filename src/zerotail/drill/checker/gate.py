"""When a sender may send: behind the gate, or exposed and openly so (S8, S18).

As in `senders.py`, the events are in their merged order: a release counts for what arrives after it, and the
mode of an epoch is the last one that was recorded. A sender that read `exposed` may be slow: what it read before the
row `gated` is in every copy that has the row, so it may leave after it, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.core.identity import EmissionNumber, Epoch, Incarnation, SiteName
from zerotail.drill.checker.facts import Facts, Stream
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import (
    EmissionAttempted,
    EpochOpened,
    ModeChanged,
    Released,
    ReplicationChanged,
)

_Sender = tuple[SiteName, Epoch, Incarnation]


def durable_before_sent(facts: Facts) -> Iterator[Finding]:
    """S8: whatever arrives was released before by the same sender, by a true gate or in an exposed epoch."""
    modes: dict[Epoch, EpochOpened | ModeChanged] = {}
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
            held = released.get(key, 0)
            if event.by == "gate" and _gate_holds(event):
                released[key] = max(held, _covered(facts, stream, event, held))
            elif event.by == "exposure" and _was_exposed(event, modes.get(event.epoch)):
                released[key] = max(held, event.through)
        elif type(event) is EpochOpened or type(event) is ModeChanged:
            modes[event.epoch] = event


def _was_exposed(release: Released, row: EpochOpened | ModeChanged | None) -> bool:
    """Whether the epoch was exposed when the sender read what it releases."""
    if type(row) is ModeChanged and row.mode == "gated":
        return 0 < release.lsn_wanted <= row.lsn
    return row is not None and row.mode == "exposed"


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
                if not _was_exposed(event, row):
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
