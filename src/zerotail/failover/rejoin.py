"""Rejoin: a site that was lost comes back as standby, and the epoch goes back to gated.

1. observe: the other site is the one that works, though perhaps not live before it has a standby; this one
   is not its standby already, or one that can never catch up, and has not worked alone meanwhile. Nor does it
   hold anything that was behind the gate and that the other one has lost, in a failover inside its site.
2. Keep what only this site's database has: locally committed, never behind the gate, so nobody was told of
   it.
3. Say in the active database that the site comes back in this epoch: its topics get new names, so that an old
   tail is never read again. Before the copy, so that no copy exists without it.
4. Stop the database, look once more that nobody took over on it and that nothing was added to the tail, and
   replace it by a fresh copy, which follows the active one from then on.
5. When the copy holds all of that, write `gated` into the epoch row, unless it says so already, behind every
   transaction that has read `exposed`, and wait until the row itself is behind the gate.

Step 5 is one way and one row: a copy that says `gated` has that row, hence everything that was released
before it (the log is a prefix), and from that row on nothing leaves without the gate. A copy that lacks it
still says `exposed` and refuses to take over.
"""

from __future__ import annotations

from zerotail.core.completeness import Surplus, may_hold_more, require_replaceable
from zerotail.core.epoch import Durability, works_at
from zerotail.core.identity import SiteName
from zerotail.errors import Refused as NotAllowed
from zerotail.errors import Unavailable
from zerotail.failover.steps import StepNumbers, require_done
from zerotail.flow.gate import wait_for_gate
from zerotail.ports import (
    ChangeEpoch,
    CompareCopies,
    CopiesCompared,
    CopyDatabase,
    KeepTail,
    ObserveSite,
    RecordRejoined,
    SiteObserved,
    Standing,
    Story,
)


def rejoin(site: SiteName, active: SiteName, *, database_lost: bool = False, accept_loss: bool = False) -> Story[bool]:
    """Bring `site` back as the standby of `active`; runs at the active site. False: nothing was to be done.

    `database_lost` and `accept_loss` are an operator's statements. Without the first a database that does not answer
    is not replaced: it may have gone on alone, and answer again in a moment. Without the second one that holds more
    than the active site is not.
    """
    # 1
    there = yield from _require_active(active)
    standing = there.standing
    seen = yield ObserveSite(site)
    if isinstance(seen, SiteObserved):
        require_verified(site, seen, active, there)
    surplus = yield from _compare(seen, there, site, active)
    if surplus is not None:
        require_replaceable(site, active, surplus, accept_loss=accept_loss)
    attached = isinstance(seen, SiteObserved) and follows_on(seen, there, surplus)
    if attached and standing.lineage.current.durability is Durability.GATED:
        return False
    if not attached:
        replaced = None
        if not isinstance(seen, SiteObserved) and not database_lost:
            raise NotAllowed(
                f"the database of {site} does not answer, so nobody knows whether it has gone on alone",
                code="ZT413",
                tries=(f"zerotail rejoin plan --site {site}",),
            )
        if isinstance(seen, SiteObserved):
            require_nothing_released(site, seen.standing, standing)
            # 2
            kept = yield KeepTail(site, active, surplus is not None and not surplus.nothing)
            require_done(kept, "keep the tail", _step(site))
            replaced = (seen.standing.epoch, kept.position)
        # 3
        noted = yield RecordRejoined(active, site, standing.epoch)
        require_done(noted, "note the return", _step(site))
        # 4
        require_done((yield CopyDatabase(site, active, replaced)), "copy the database", _step(site))
    # 5
    there = yield from _require_active(active)
    standing = there.standing
    yield from wait_for_gate(standing.asker, there.flushed)
    if standing.lineage.current.durability is Durability.EXPOSED:
        changed = yield ChangeEpoch(active, standing.epoch, durability=Durability.GATED)
        require_done(changed, "go back to gated", _step(site))
        yield from wait_for_gate(standing.asker, changed.position)
    return True


def _compare(seen: object, there: SiteObserved, site: SiteName, active: SiteName) -> Story[Surplus | None]:
    """What the copy holds and the active site lacks; None where that cannot be."""
    if not isinstance(seen, SiteObserved) or not holds_more_perhaps(seen, there, active):
        return None
    compared = yield CompareCopies(site, active)
    if not isinstance(compared, CopiesCompared):
        raise Unavailable(f"what the copy at {site} holds could not be compared with {active}", code="ZT410")
    return compared.surplus


def follows_on(seen: SiteObserved, there: SiteObserved, surplus: Surplus | None) -> bool:
    """Whether a database follows the active one: one that went beyond the place where that one left its log does not,
    though the log may be kept for it.
    """
    if surplus is not None:
        left = there.standing.timeline != seen.standing.lineage.current.timeline
        if not surplus.nothing or (left and not seen.receives and not surplus.within):
            return False
    return follows(seen, there)


def holds_more_perhaps(seen: SiteObserved, there: SiteObserved, active: SiteName) -> bool:
    """Whether a copy has to be compared with the active one before it is replaced."""
    copy, history = seen.standing, there.standing
    return may_hold_more(copy.lineage, copy.timeline, history.lineage, active, history.timeline)


def follows(seen: SiteObserved, active: SiteObserved) -> bool:
    """Whether a database follows the active one, or will when it can: a standby, the same system, a part of the same
    history, and the log that it needs is still there.
    """
    standing = seen.standing
    return (
        standing.timeline is None
        and standing.system == active.standing.system
        and standing.lineage.current.epoch in active.standing.lineage
        and seen.can_follow(active)
    )


def require_nothing_released(site: SiteName, replaced: Standing, active: Standing) -> None:
    """`Refused` when the copy that would be replaced may have released what the active site does not have."""
    row = replaced.lineage.current
    if row.durability is Durability.EXPOSED and row.epoch not in active.lineage:
        raise NotAllowed(
            f"{site} has worked alone in epoch {row.epoch}, which is not part of the history of epoch {active.epoch}",
            code="ZT437",
            why="Replacing its database would destroy the only copy of messages that it sent.",
            tries=("zerotail journal compare", f"zerotail takeover plan --to {site}"),
        )


def require_verified(site: SiteName, seen: SiteObserved, active: SiteName, there: SiteObserved) -> None:
    """`Refused` when the active database was started anew and nobody has verified that the copy holds no more: it may
    be the only one of what the active one has lost.
    """
    if there.standing.waits_for_life and seen.standing.system == there.standing.system:
        raise NotAllowed(
            f"the database of {active} was started anew, and nobody has verified that {site} holds no more of its log",
            code="ZT478",
            why=f"{site} holds the log up to {seen.flushed}, and that of {active} ends at {there.flushed}.",
            tries=(
                f"zerotail takeover plan --to {site}    # loses nothing",
                f"zerotail takeover plan --to {active} --accept-lost-site {site}    # then {site} can be replaced",
            ),
        )


def _require_active(active: SiteName) -> Story[SiteObserved]:
    seen = yield ObserveSite(active)
    if not isinstance(seen, SiteObserved):
        raise Unavailable(f"the database of {active} does not answer", code="ZT410")
    standing = seen.standing
    if not works_at(standing.lineage, active, standing.timeline):
        raise NotAllowed(
            f"{active} is not the active site: it is in epoch {standing.epoch} of {standing.lineage.current.site}",
            code="ZT433",
            tries=("zerotail status",),
        )
    return seen


def _step(site: SiteName) -> StepNumbers:
    return StepNumbers("ZT412", unknown="ZT415", unanswered="ZT412", tries=(f"zerotail rejoin plan --site {site}",))
