"""Which copy is the complete one: what the other site holds of a history, and the active site has lost.

A database that was replaced inside its site by one of its replicas goes on from where that replica was. Whatever the
other site had confirmed by then may have left: it opened the gate. So before such a site goes on, and before the other
site's copy is replaced, what both hold is compared.

1. A copy of an epoch of its *own* site holds more than the other one, too, and nobody was told of it: it was never
   behind the gate. What matters is a copy of the *active* site's epochs (`may_hold_more`).
2. What survived is the cut of the first epoch that the copy does not know: nobody writes between the failover and that
   epoch. Without one it is what the active database holds now.
3. A copy whose log ends before the other one's went on holds nothing of its own, however far it has replayed it. That
   can be said only where both went the same way up to there (`same_way`).
4. A copy that does not even know an epoch in which the other one has been at work lacks all of it (`find_beyond`).
5. Where it cannot be told, because a part of the log is not replayed yet, the answer is no.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.identity import Lsn, ProducerNumber, SiteName, Timeline
from zerotail.errors import Refused

_WORDS = (
    ("messages", "message that may have been sent", "messages that may have been sent"),
    ("instructions", "acknowledged instruction", "acknowledged instructions"),
    ("segments", "segment", "segments"),
    ("epochs", "epoch", "epochs"),
    ("claims", "claim or intent of a sender", "claims and intents of senders"),
)


@dataclass(frozen=True, slots=True)
class Surplus:
    """What the copy at a site holds and the history of the other one lacks."""

    flushed: Lsn
    """Up to where the copy holds the log."""
    went_on: Lsn | None
    """Where the other database left that log; None when its server does not know any more."""
    ends: Lsn
    """Up to where the other database holds its own log."""
    replayed: bool = True
    """Whether everything that the copy holds could be read."""
    same_way: bool = True
    """Whether the copy knows every epoch before the one in which the other database went on."""
    messages: int = 0
    instructions: int = 0
    segments: int = 0
    epochs: int = 0
    claims: int = 0

    @property
    def nothing(self) -> bool:
        """Whether the copy holds nothing that the other history lacks."""
        return self.within or (self.replayed and not any(getattr(self, name) for name, _, _ in _WORDS))

    @property
    def within(self) -> bool:
        """Whether the copy's log ends before the other database left it, as far as that is known: it can follow."""
        return self.same_way and self.went_on is not None and self.flushed <= self.went_on

    def told(self, site: SiteName, active: SiteName) -> tuple[str, str]:
        """Both positions, and what is at stake."""
        where = f"went on at {told_position(self.went_on)}" if self.went_on is not None else "left it earlier"
        positions = (
            f"{site} holds the log up to {told_position(self.flushed)}; {active} {where}, "
            f"and holds its own up to {told_position(self.ends)}"
        )
        return positions, self.told_stake(site)

    def told_stake(self, site: SiteName) -> str:
        """How much would be lost with the copy."""
        counts = [(getattr(self, name), one, many) for name, one, many in _WORDS]
        shown = [f"{count} {one if count == 1 else many}" for count, one, many in counts[:2]]
        shown += [f"{count} {one if count == 1 else many}" for count, one, many in counts[2:] if count]
        unread = "" if self.replayed else f", and what {site} has not replayed yet"
        return f"at stake: {', '.join(shown)}{unread}"


def told_position(position: Lsn) -> str:
    """A place in the log as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def may_hold_more(
    copy: Lineage, copied: Timeline | None, history: Lineage, active: SiteName, timeline: Timeline | None
) -> bool:
    """Whether a copy, a primary on timeline `copied` or a standby (None), could hold something that was behind the gate
    of `active`, whose database is on `timeline` and has this history.
    """
    row, current = copy.current, history.current
    if timeline is None:
        return False
    if current.site != active:
        # Promoted, and in no epoch of its own site: a standby may have followed one of it, not replayed yet.
        return copied is None
    return row.site == active and (timeline != current.timeline or not _is_same(row, current))


def first_unknown(copy: Lineage, history: Lineage) -> EpochRow | None:
    """The first epoch of a history that a copy does not know: what lies behind its cut did not survive."""
    return next((row for row in history.rows if not any(_is_same(row, known) for known in copy.rows)), None)


def find_beyond(other: Lineage, own: Lineage) -> EpochRow | None:
    """The newest epoch that the other site's copy knows and this one does not, if it was ever at work. One that a
    replica opened behind the gate, and that has not gone live, has released nothing.
    """
    unknown = [row for row in other.rows if not any(_is_same(row, known) for known in own.rows)]
    renewed = (Phase.OPENED, Durability.GATED, "timeline")
    at_work = [row for row in unknown if (row.phase, row.durability, row.cause) != renewed]
    return at_work[-1] if at_work else None


def same_way(copy: Lineage, history: Lineage, timeline: Timeline) -> bool:
    """Whether a copy knows the epoch in which a database was when it changed to its present timeline, once."""
    before = [row for row in history.rows if row.timeline != timeline]
    return (
        bool(before) and timeline == before[-1].timeline + 1 and any(_is_same(before[-1], known) for known in copy.rows)
    )


def count_epochs(copy: Lineage, history: Lineage) -> int:
    """How many epochs only the copy knows; one that was opened again on another timeline is another one."""
    return sum(not any(_is_same(row, known) for known in history.rows) for row in copy.rows)


def count_instructions(held: Cut, survived: Cut, inner: Collection[ProducerNumber]) -> int:
    """How many instructions lie behind what survived; the rows of stages (`inner`) are messages."""
    return sum(
        max(0, serial - survived.serials.get(source, 0))
        for source, serial in held.serials.items()
        if source[0] not in inner
    )


def count_segments(held: Cut, survived: Cut) -> int:
    """How many segments lie behind what survived."""
    known = {(head.stage, head.partition): head.segment for head in survived.heads}
    return sum(max(0, head.segment - known.get((head.stage, head.partition), 0)) for head in held.heads)


def _is_same(one: EpochRow, other: EpochRow) -> bool:
    return (one.epoch, one.timeline) == (other.epoch, other.timeline)


def require_complete(site: SiteName, active: SiteName, surplus: Surplus, *, accept_loss: bool) -> None:
    """`Refused` when `active` would go on without something that the copy at `site` holds."""
    if surplus.nothing or accept_loss:
        return
    raise Refused(
        f"{active} lacks what {site} holds: its database went on, inside the site, from a replica that was behind.",
        code="ZT470",
        why="\n".join((f"Only {site}'s copy has all that was released.", *surplus.told(site, active))),
        tries=(
            f"zerotail takeover plan --to {site}    # loses nothing",
            f"zerotail takeover plan --to {active} --accept-loss    # if that may be lost",
        ),
    )


def has_lost_end(copy: Lsn, ends: Lsn, *, verified: bool) -> bool:
    """Whether a primary whose present life nobody has verified has lost what its standby holds: same system, same
    timeline, and its log ends before the standby's.
    """
    return not verified and copy > ends


def lost_end(site: SiteName, active: SiteName, surplus: Surplus) -> Refused:
    """`active` came back without the end of its log, and the copy at `site` has it."""
    held, ends = told_position(surplus.flushed), told_position(surplus.ends)
    alone = f"zerotail takeover plan --to {active} --accept-lost-site {site}"
    return Refused(
        f"the database of {active} has lost the end of its log, and {site} holds it.",
        code="ZT479",
        why=f"Only {site}'s copy has all that was released. It holds the log up to {held}; that of {active} ends at "
        f"{ends}.\n{surplus.told_stake(site)}",
        tries=(
            f"zerotail takeover plan --to {site}    # loses nothing",
            f"{alone}    # if {site} is stopped, and that may be lost",
        ),
    )


def require_replaceable(site: SiteName, active: SiteName, surplus: Surplus, *, accept_loss: bool) -> None:
    """`Refused` when replacing the copy at `site` would destroy the only copy of something that was released."""
    if surplus.nothing or accept_loss:
        return
    raise Refused(
        f"the copy at {site} is more complete than the database of {active}, and would be destroyed.",
        code="ZT471",
        why="\n".join(surplus.told(site, active)),
        tries=(
            f"zerotail takeover plan --to {site}    # loses nothing",
            f"zerotail rejoin plan --site {site} --accept-loss {site}    # if that may be lost",
        ),
    )
