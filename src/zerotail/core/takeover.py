"""The plan of a takeover: which of its steps are still to be done at a site, or why it must not begin.

The plan is computed from what the site's own database says, so that a takeover that was interrupted
anywhere is finished by running it again (I18), at the same site or, after that one is lost as well, at the
other.

1. A database that is a primary and whose last epoch is its own, on its own timeline, is active: only what
   its epoch still lacks is left. A handover that was given up is reopened the same way.
2. A primary on a timeline for which no epoch was opened (promoted a moment ago, or a replica inside the
   site took over) opens one before anything else is written.
3. A copy that says `exposed` of another site's epoch may lack what that site released: refused, unless the
   operator accepts the loss by a statement of its own.
4. So may a replica that took over inside its site: where the epoch is exposed nobody else can tell, and where it is
   gated the other site's copy is the measure (`core.completeness`).
5. A replica of its own site that is still in recovery is not promoted here: whoever runs the site does that. Before its
   promotion nobody can compare it, and behind it only rule 4 may let it go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

from zerotail.core.completeness import Surplus, require_complete
from zerotail.core.epoch import Durability, EpochRow, Lineage, Phase, next_epoch, works_at
from zerotail.core.identity import Epoch, Lsn, SiteName, Timeline, epoch_of, generation_of
from zerotail.errors import Refused

_NOWHERE = Lsn(0)


class Step(Enum):
    """The steps of a takeover, in order; notes and databases keep the numbers."""

    STOP_WAITING = 1
    """Only at a site that goes on alone: commits return without the standby that is out."""
    FENCE = 2
    PROMOTE = 3
    OPEN_EPOCH = 4
    REBUILD = 5
    FILL = 6
    HANDSHAKE = 7
    GO_LIVE = 8
    """In one row: stages, emitters and producers wait for it, and each has a handshake of its own."""


class Strategy(StrEnum):
    """What becomes of the survivor's topics before its stages go live; the state is in the database either way."""

    SKIP = "skip"
    """They are left as they are: what is journaled is passed over."""
    FOLLOWER = "follower"
    """What the follower had not written yet is appended: they hold the whole journal, in order."""
    AUTO = "auto"
    """As `follower` where one has been at work and the tail is short, else as `skip`."""
    ORDERED_REFILL = "ordered-refill"
    """What is missing is written in order, and all of it is read back and proven."""
    UNBOUNDED = "unbounded"
    """They are completed, and read in journal order and proven, with whatever memory that takes."""
    BOUNDED = "bounded"
    """The same with limited memory."""
    SORT = "sort"
    """The same by Spark, which sorts."""
    MIRROR_TAIL = "mirror-tail"
    """What a mirror brought is kept; the tail is written, read in order and proven."""

    @property
    def proves(self) -> bool:
        """Whether the records are read and proven before the stages go live."""
        return self not in (Strategy.SKIP, Strategy.FOLLOWER, Strategy.AUTO)

    @property
    def reads_all(self) -> bool:
        """Whether that are all records, from the first one on: only then a state can be rebuilt from them."""
        return self.proves and self is not Strategy.MIRROR_TAIL


@dataclass(frozen=True, slots=True)
class SiteView:
    """What a site's own database says."""

    site: SiteName
    site_number: int
    lineage: Lineage
    timeline: Timeline | None
    """None while the database is a standby."""
    flushed: Lsn = _NOWHERE
    """How much of the log it holds."""
    verified: bool = True
    """No where a primary was started anew in its epoch, and nobody has verified that (`core.life`)."""


@dataclass(frozen=True, slots=True)
class OtherCopy:
    """What is known of the copy at the other site, where it was looked at."""

    site: SiteName
    surplus: Surplus | None = None
    """What it holds and this one lacks, where a replica took over inside this one's site."""
    beyond: EpochRow | None = None
    """The newest epoch at work that it knows and this one does not."""
    claimed: Epoch | None = None
    """The newest epoch that a receiver has met and this copy does not know: whoever accepts that goes on behind it."""


@dataclass(frozen=True, slots=True)
class TakeoverPlan:
    """What is left to do; `expected` is the epoch on which the plan rests, `epoch` the one that will be
    live.
    """

    site: SiteName
    expected: Epoch
    epoch: Epoch
    durability: Durability
    cause: str
    steps: tuple[Step, ...]
    timeline: Timeline | None = None
    """On which the database was a primary when the plan was made: on another one the plan does not hold."""
    flushed: Lsn = _NOWHERE
    """How much of the log the database held that was looked at: what is promoted must hold as much."""
    must_fence: bool = False
    """Nothing is done unless the other site was shut off."""

    @property
    def done(self) -> bool:
        """Whether this site is active already."""
        return not self.steps


_FROM_EPOCH = (
    Step.OPEN_EPOCH,
    Step.REBUILD,
    Step.FILL,
    Step.HANDSHAKE,
    Step.GO_LIVE,
)
WHOLE = (Step.FENCE, Step.PROMOTE, *_FROM_EPOCH)
"""All steps of a takeover from a site that is lost."""
HANDED_OVER = (Step.PROMOTE, *_FROM_EPOCH)
"""Where the other site has stopped its database itself."""
_RENEWAL = (Step.OPEN_EPOCH, Step.HANDSHAKE, Step.GO_LIVE)
"""At the site that works already: its Kafka and its state are the ones it had."""


def renews(view: SiteView) -> bool:
    """Whether the site goes on in its own epoch on another timeline, or has begun to and is not live: a replica inside
    it took over.
    """
    row = view.lineage.current
    if works_at(view.lineage, view.site, view.timeline):
        return row.cause == "timeline" and row.phase is Phase.OPENED
    return row.site == view.site and view.timeline is not None


def plan_takeover(
    view: SiteView,
    *,
    accept_loss: bool = False,
    cause: str = "takeover",
    held: Sequence[str] = (),
    other: OtherCopy | None = None,
    old: bool = False,
    at_least: Epoch | None = None,
) -> TakeoverPlan:
    """The steps that make `view.site` the active one; `Refused` when its copy may lack what was released.

    `held` is what the copy holds, in lines with numbers: whoever is refused has to decide by them. `other` is what
    is known of the other site's copy, if it answers. One that was accepted as `old` may lack epochs, as whatever is
    accepted as a loss may have some. `at_least` is what an attempt that was interrupted was to open.
    """
    row = view.lineage.current
    _require_promoted(view, other)
    if other is not None and other.surplus is not None:
        require_complete(other.site, view.site, other.surplus, accept_loss=accept_loss)
    behind = other.claimed if other is not None else None
    if works_at(view.lineage, view.site, view.timeline):
        if behind is not None and view.verified:
            return _reopen(view, behind)
        left = _RENEWAL if row.cause in ("timeline", "exposure") else _FROM_EPOCH
        steps = {Phase.OPENED: left[1:], Phase.DRAINING: (Step.GO_LIVE,), Phase.LIVE: ()}[row.phase]
        return TakeoverPlan(view.site, row.epoch, row.epoch, row.durability, row.cause, steps)
    if renews(view):
        # A replica inside the site took over, and it has what the other site holds, or what it lacks may be lost.
        if row.durability is Durability.EXPOSED and not accept_loss:
            raise _unknown_replica(view, held)
        epoch = _next(view, some_may_be_lost=accept_loss, behind=behind, at_least=at_least)
        return TakeoverPlan(view.site, row.epoch, epoch, row.durability, "timeline", _RENEWAL, view.timeline)
    beyond = None if other is None else other.beyond
    if other is not None and beyond is not None and not accept_loss:
        raise _older_copy(view, other.site, beyond, held)
    some_may_be_lost = accept_loss or old or beyond is not None or _lacks(other)
    epoch = _next(view, some_may_be_lost=some_may_be_lost, behind=behind, at_least=at_least)
    if row.durability is Durability.EXPOSED and not accept_loss:
        raise Refused(
            f"the copy at {view.site} says that epoch {row.epoch} of {row.site} is exposed, so {row.site} "
            f"may have sent messages that {view.site} does not have.",
            code="ZT430",
            why="Going on here could send other messages under the same numbers." + _held(view, held),
            tries=(
                f"zerotail status --site {row.site}",
                f"zerotail rejoin plan --site {view.site}",
                f"zerotail takeover plan --to {view.site} --accept-loss    # if what goes beyond that may be lost",
            ),
        )
    # A site that hands over has stopped its database itself; nothing of it is shut off.
    fence = () if cause == "handover" else (Step.FENCE,)
    first = (*fence, Step.PROMOTE) if view.timeline is None else ()
    return TakeoverPlan(
        view.site, row.epoch, epoch, Durability.EXPOSED, cause, first + _FROM_EPOCH, view.timeline, view.flushed
    )


def _next(view: SiteView, *, some_may_be_lost: bool, behind: Epoch | None, at_least: Epoch | None) -> Epoch:
    """The epoch that a site opens: behind the newest one that a receiver has met, too."""
    generations = [generation_of(next_epoch(view.lineage, view.site_number, some_may_be_lost=some_may_be_lost))]
    generations += [] if behind is None else [generation_of(behind) + 1]
    generations += [] if at_least is None else [generation_of(at_least)]
    return epoch_of(max(generations), view.site_number)


def _reopen(view: SiteView, behind: Epoch) -> TakeoverPlan:
    """The plan of a site that works in an epoch which receivers refuse: they have met a newer one, whose loss is
    accepted. It goes on behind that one, and what its epoch still lacked is done in the new one.
    """
    row = view.lineage.current
    exposed = row.durability is Durability.EXPOSED
    begun = row.phase is Phase.OPENED and row.cause not in ("timeline", "exposure")
    cause, steps = (row.cause, _FROM_EPOCH) if begun else ("exposure" if exposed else "timeline", _RENEWAL)
    epoch = _next(view, some_may_be_lost=True, behind=behind, at_least=None)
    return TakeoverPlan(view.site, row.epoch, epoch, row.durability, cause, steps, view.timeline)


def _require_promoted(view: SiteView, other: OtherCopy | None = None) -> None:
    row = view.lineage.current
    if row.site != view.site or view.timeline is not None:
        return
    elsewhere = (f"zerotail takeover plan --to {other.site}",) if other is not None else ()
    raise Refused(
        f"the database of {view.site} is a replica inside the site that nobody has promoted, in epoch {row.epoch} of "
        f"{view.site} itself.",
        code="ZT446",
        why=f"It may lack what {view.site} released; only a promoted one can be compared with the other site's copy.",
        tries=(
            f"select pg_promote();    # in SQL at {view.site}, unless its high-availability manager does it",
            f"zerotail takeover plan --to {view.site}    # then",
            *elsewhere,
        ),
    )


def _unknown_replica(view: SiteView, held: Sequence[str], line: str = "") -> Refused:
    row = view.lineage.current
    line = line or f"zerotail takeover plan --to {view.site} --accept-loss"
    return Refused(
        f"the database of {view.site} has gone on from a replica inside the site in epoch {row.epoch}, and no other "
        f"copy can show that it had everything.",
        code="ZT472",
        why=f"What {view.site} released before may be missing in it, and its numbers be given again."
        + _held(view, held),
        tries=(
            f"zerotail status --site {view.site}",
            f"{line}    # if the replica had everything, or the rest may be lost",
        ),
    )


def _lacks(other: OtherCopy | None) -> bool:
    return other is not None and other.surplus is not None and not other.surplus.nothing


def _older_copy(view: SiteView, other: SiteName, beyond: EpochRow, held: Sequence[str]) -> Refused:
    tries = (f"zerotail takeover plan --to {view.site} --accept-loss    # if all of that may be lost",)
    return Refused(
        f"the copy at {view.site} is in epoch {view.lineage.current.epoch}, and the one at {other} knows epoch "
        f"{beyond.epoch}, in which {beyond.site} has worked since.",
        code="ZT473",
        why=f"What was released in epoch {beyond.epoch} is missing at {view.site}." + _held(view, held),
        tries=(f"zerotail takeover plan --to {other}    # loses nothing", *tries),
    )


def _held(view: SiteView, held: Sequence[str]) -> str:
    return "".join(f"\n{line}" for line in (f"The copy at {view.site} holds:", *held)) if held else ""


def plan_exposure(
    view: SiteView,
    *,
    accept_loss: bool = False,
    fence: bool = False,
    behind: Epoch | None = None,
    at_least: Epoch | None = None,
) -> TakeoverPlan:
    """Go on without a standby, by an operator's statement that the other site is out: a new epoch that says
    so.

    It is a new epoch and not a changed row, because the other site's copy still says `gated`: should it
    take over after all, the two histories have different names and a receiver that remembers claims can
    tell them apart (I21).

    Commits stop waiting first: one that waits holds the rows that the new epoch has to change.

    A replica that took over inside the site and has not met the gate since may lack what the other site holds. With
    `fence` the other site might take over by itself: it is shut off first, and nothing is done unless it is.

    A life that nobody has verified may have lost the end of the log, and with it an epoch in which the site was alone:
    records of that one are in its Kafka. `behind` is the newest epoch that a receiver has met, if its loss is accepted.
    """
    row = view.lineage.current
    _require_promoted(view)
    if not works_at(view.lineage, view.site, view.timeline):
        raise Refused(
            f"{view.site} is not the active site: its copy is in epoch {row.epoch} of {row.site}",
            code="ZT431",
            tries=(f"zerotail takeover plan --to {view.site}",),
        )
    first = (*((Step.FENCE,) if fence else ()), Step.STOP_WAITING)
    if row.durability is Durability.EXPOSED:
        if behind is not None:
            anew = _reopen(view, behind)
            return replace(anew, steps=(*first, *anew.steps), must_fence=fence)
        left = (Step.STOP_WAITING, *_RENEWAL[1:]) if row.phase is Phase.OPENED else ()
        return TakeoverPlan(view.site, row.epoch, row.epoch, row.durability, row.cause, left)
    if renews(view) and not accept_loss:
        raise _unknown_replica(view, (), f"zerotail takeover plan --to {view.site} --accept-lost-site S --accept-loss")
    some_may_be_lost = accept_loss or renews(view) or not view.verified
    epoch = _next(view, some_may_be_lost=some_may_be_lost, behind=behind, at_least=at_least)
    steps = (*first, *_RENEWAL)
    return TakeoverPlan(
        view.site, row.epoch, epoch, Durability.EXPOSED, "exposure", steps, view.timeline, must_fence=fence
    )
