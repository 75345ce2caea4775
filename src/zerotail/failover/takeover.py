"""Takeover: this site goes on at the break point.

    observe   what the own database says of its role, timeline and epochs
    plan      `core.takeover.plan_takeover`: which steps are left, or why it must not begin
    act       step by step, each idempotent and noted, so that it can be interrupted anywhere and run again
    report    what was done

Steps (`core.takeover.Step`): 1 stop waiting for a standby that is out (only whoever goes on alone), 2 fence
what can be fenced, 3 promote, 4 open the epoch with the cuts (the first write of the new history), 5 rebuild
by replay and compare the hashes, 6 store where stages begin to read, 7 claim the lanes at receivers that
remember, 8 go live (an epoch that promises the gate: behind it). Until a standby is attached again the epoch
is exposed; see `rejoin.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from zerotail.core import receiver as receivers
from zerotail.core import takeover as plans
from zerotail.core.completeness import find_beyond, may_hold_more
from zerotail.core.emission import Lane
from zerotail.core.epoch import Durability, Phase, topic_at, works_at
from zerotail.core.head import Head, first_head
from zerotail.core.identity import ChannelName, ProducerNumber, SegmentNumber, SiteName, StageName, TopicName
from zerotail.core.receiver import ReceiverClass, Welcome
from zerotail.core.takeover import OtherCopy, SiteView, Step, Strategy, TakeoverPlan
from zerotail.errors import Refused as NotAllowed
from zerotail.errors import Unavailable, Unfinished
from zerotail.failover.follow import Followed, append_behind
from zerotail.failover.replay import Replay
from zerotail.failover.steps import StepNumbers, require_done
from zerotail.flow.gate import wait_for_gate
from zerotail.flow.stage import Stage
from zerotail.ports import (
    ChangeEpoch,
    ClaimAtReceiver,
    ClaimLane,
    CompareCopies,
    CopiesCompared,
    Done,
    FenceSite,
    Indefinite,
    JournalRead,
    LaneClaimed,
    LogEnd,
    ObserveSite,
    OpenEpoch,
    Promote,
    ReadJournal,
    ReadLogEnd,
    RecordStep,
    Refused,
    RestoreTopic,
    SiteObserved,
    StopWaiting,
    StoreStart,
    Story,
    TopicRestored,
    Unreachable,
)

_SHORT_TAIL = 50_000
_STEP = StepNumbers("ZT432", unknown="ZT404", unanswered="ZT405", tries=("zerotail takeover status",))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Everything that runs at a site, as far as a takeover has to know it."""

    stages: Sequence[Stage]
    producers: Mapping[StageName, Sequence[ProducerNumber]]
    lanes: Mapping[Lane, ReceiverClass]
    """Lanes to receivers outside; lanes between stages need no claim."""
    stored: frozenset[StageName] = frozenset()
    """Stages that go on with the state in the database: they need no replay."""
    strategy: Strategy = Strategy.SKIP
    rebuild: bool = False
    """Whether handlers are run over the restored records, and their state compared with the database's."""


@dataclass(frozen=True, slots=True)
class TakeoverReport:
    """What a takeover did."""

    plan: TakeoverPlan
    unfenced: bool
    replayed: int
    """Records that went through the handlers again."""
    refilled: int = 0
    """Records that were appended to this site's topics."""
    read: int = 0
    """Records of this site's topics that were read before it went live."""
    other_histories: tuple[Lane, ...] = ()
    """Lanes whose receiver got its last message in another history: each stops at its emitter, and no other does."""


@dataclass(frozen=True, slots=True)
class Filled:
    """What was done to the topic of one stage."""

    appended: int
    read: int


def take_over(
    pipeline: Pipeline,
    site: SiteName,
    site_number: int,
    other: SiteName,
    *,
    accept_loss: bool = False,
    cause: str = "takeover",
) -> Story[TakeoverReport]:
    """Make `site` the active one, or finish what an interrupted attempt began."""
    view = yield from observe_site(site, site_number)
    there = None if cause == "handover" else (yield from _look_at_other(view, other))
    plan = plans.plan_takeover(view, accept_loss=accept_loss, cause=cause, other=there)
    return (yield from carry_out(pipeline, plan, other, "loss accepted" if accept_loss else ""))


def expose(pipeline: Pipeline, site: SiteName, site_number: int, other: SiteName) -> Story[TakeoverReport]:
    """Go on without the other site, by the operator's statement that it is out."""
    view = yield from observe_site(site, site_number)
    return (yield from carry_out(pipeline, plans.plan_exposure(view), other, f"{other} is out"))


def observe_site(site: SiteName, site_number: int) -> Story[SiteView]:
    """What a site's own database says."""
    seen = yield ObserveSite(site)
    if not isinstance(seen, SiteObserved):
        raise Unavailable(f"the database of {site} does not answer", code="ZT401")
    standing = seen.standing
    verified = not standing.waits_for_life
    return SiteView(site, site_number, standing.lineage, standing.timeline, seen.flushed, verified)


def _look_at_other(view: SiteView, other: SiteName) -> Story[OtherCopy | None]:
    """What the other site's copy has and this one lacks. None where nobody answers: then an epoch that is renewed stays
    behind the gate, which only a copy of this very history opens.
    """
    if works_at(view.lineage, view.site, view.timeline) and not plans.renews(view):
        return None
    seen = yield ObserveSite(other)
    if not isinstance(seen, SiteObserved):
        return None
    lineage = seen.standing.lineage
    known = OtherCopy(other, beyond=find_beyond(lineage, view.lineage))
    if not may_hold_more(lineage, seen.standing.timeline, view.lineage, view.site, view.timeline):
        return known
    compared = yield CompareCopies(other, view.site)
    return replace(known, surplus=compared.surplus) if isinstance(compared, CopiesCompared) else None


def carry_out(pipeline: Pipeline, plan: TakeoverPlan, other: SiteName, operator: str) -> Story[TakeoverReport]:
    """Do the steps of a plan."""
    unfenced = False
    replayed = refilled = read = 0
    other_histories: tuple[Lane, ...] = ()
    for step in plan.steps:
        match step:
            case Step.STOP_WAITING:
                require_done(
                    (yield StopWaiting(plan.site)), f"let commits of {plan.site} return without {other}", _STEP
                )
            case Step.FENCE:
                # Not fatal: the gate keeps a site that is still alive from releasing anything new.
                unfenced = not isinstance((yield FenceSite(other)), Done)
                if unfenced and plan.must_fence:
                    raise _not_fenced(plan, other)
            case Step.PROMOTE:
                require_done((yield Promote(plan.site, plan.flushed)), f"promote the database of {plan.site}", _STEP)
            case Step.OPEN_EPOCH:
                opened = yield OpenEpoch(
                    plan.site, plan.expected, plan.epoch, plan.durability, plan.cause, operator, plan.timeline
                )
                require_done(opened, f"open epoch {plan.epoch}", _STEP)
            case Step.REBUILD:
                for stage in pipeline.stages:
                    if stage.name in pipeline.stored:
                        continue
                    replayed += yield from _replay(stage, pipeline.producers[stage.name])
            case Step.FILL:
                for stage in pipeline.stages:
                    filled = yield from _fill(stage, plan, pipeline.strategy, rebuild=pipeline.rebuild)
                    refilled += filled.appended
                    read += filled.read
            case Step.HANDSHAKE:
                other_histories = yield from _claim_lanes(pipeline, plan)
            case Step.GO_LIVE:
                yield from _gate_the_epoch(plan)
                live = yield ChangeEpoch(plan.site, plan.epoch, phase=Phase.LIVE)
                require_done(live, f"take epoch {plan.epoch} live", _STEP)
        yield RecordStep(plan.site, plan.epoch, step.value)
    return TakeoverReport(plan, unfenced, replayed, refilled, read, other_histories)


def _not_fenced(plan: TakeoverPlan, other: SiteName) -> NotAllowed:
    return NotAllowed(
        f"{other} could not be shut off, and takes over by itself (takeover.automatic: on): {plan.site} does not go on "
        "alone.",
        code="ZT477",
        why="Two sites that both go on alone would send two different histories. Nothing was changed.",
        tries=("zerotail status", f"zerotail takeover plan --to {plan.site} --accept-lost-site {other}"),
    )


def _gate_the_epoch(plan: TakeoverPlan) -> Story[None]:
    """An epoch that promises the gate goes live behind it: no record, claim or segment may carry a number
    that is lost again.
    """
    if plan.durability is Durability.EXPOSED:
        return
    seen = yield ObserveSite(plan.site)
    if not isinstance(seen, SiteObserved):
        raise Unfinished(f"the database of {plan.site} does not answer", code="ZT403")
    yield from wait_for_gate(seen.standing.asker, seen.flushed)


def _replay(stage: Stage, producers: Sequence[ProducerNumber]) -> Story[int]:
    """Step 5: the journal through the handler again; `Broken` when it gives other hashes."""
    replay: Replay | None = None
    while True:
        after = replay.head.segment if replay else SegmentNumber(0)
        read = yield ReadJournal(stage.name, stage.partition, after, 100)
        if not isinstance(read, JournalRead):
            raise Unfinished(f"the journal of {stage.name} cannot be read", code="ZT402")
        if replay is None:
            replay = Replay(stage, _start(read, producers))
        if not read.segments:
            return replay.head.next_position
        for segment, values in zip(read.segments, read.values, strict=True):
            replay.apply(segment, values)


def _start(read: JournalRead, producers: Sequence[ProducerNumber]) -> Head:
    return first_head(read.standing.epoch, producers)


def _fill(stage: Stage, plan: TakeoverPlan, strategy: Strategy, *, rebuild: bool = False) -> Story[Filled]:
    """Step 6: append what the strategy asks for, and prove it where it does. Stages begin where this site's topic ends
    then; nothing older is read, however long the history is.
    """
    seen = yield ObserveSite(plan.site)
    if not isinstance(seen, SiteObserved):
        raise Unfinished(f"the database of {plan.site} does not answer", code="ZT403")
    topic = topic_at(stage.topic, seen.standing.rejoined.get(plan.site))
    end = yield ReadLogEnd(topic, stage.partition, seen.standing.installation)
    followed, read = Followed(waits_for="Kafka does not answer"), _read_for(end)
    if isinstance(end, LogEnd) and strategy.proves:
        followed, proven = yield from _restore(stage, plan, strategy, rebuild=rebuild)
        read += proven
    elif isinstance(end, LogEnd):
        followed = yield from _append_tail(stage, topic, end, strategy)
    if followed.waits_for and (strategy is Strategy.FOLLOWER or strategy.proves):
        raise Unfinished(
            f"the topic {topic} could not be completed: {followed.waits_for}.",
            code="ZT407",
            why=f"It lacks records of the journal, and the strategy is {strategy}.",
            tries=("zerotail takeover resume --strategy skip",),
        )
    if followed.appended:
        end = yield ReadLogEnd(topic, stage.partition, seen.standing.installation)
        read += _read_for(end)
    if isinstance(end, LogEnd):
        stored = yield StoreStart(plan.site, stage.name, stage.partition, plan.epoch, end.hint)
        require_done(stored, f"store where {stage.name} begins", _STEP)
    return Filled(followed.appended, read)


def _read_for(end: object) -> int:
    return end.read if isinstance(end, LogEnd) else 0


def _restore(stage: Stage, plan: TakeoverPlan, strategy: Strategy, *, rebuild: bool) -> Story[tuple[Followed, int]]:
    """Complete the topic and prove it by the journal; what does not come to the recorded hashes is `Broken`. Answers
    also how many records were read for that.
    """
    restored = yield RestoreTopic(plan.site, stage.name, stage.partition, strategy.value, rebuild)
    match restored:
        case TopicRestored():
            return Followed(restored.written, 0), restored.records
        case Refused():
            return Followed(waits_for=restored.reason), 0
        case _:
            return Followed(waits_for="Kafka or the database does not answer"), 0


def _append_tail(stage: Stage, topic: TopicName, end: LogEnd, strategy: Strategy) -> Story[Followed]:
    """What the journal has and the topic lacks; left alone when nobody asked for it and it would take long."""
    match strategy:
        case Strategy.FOLLOWER:
            return (yield from append_behind(stage, topic, end))
        case Strategy.AUTO if end.serial:
            return (yield from append_behind(stage, topic, end, at_most=_SHORT_TAIL))
        case _:
            return Followed()


def _claim_lanes(pipeline: Pipeline, plan: TakeoverPlan) -> Story[tuple[Lane, ...]]:
    """Step 7: shut out older senders now. A receiver that does not answer is claimed by its emitter later, and asked
    once only: everybody waits for this step, and a channel may have many lanes.

    Answers the lanes whose receiver got its last message in another history. Nothing stops for that here: the emitter
    meets the same answer at its own claim, before it sends anything, and one lane must not stop a site (E17).

    Only an exposed epoch may be shown to receivers before its claim is behind the gate; see `flow/emit.py`.
    """
    if plan.durability is Durability.GATED:
        return ()
    silent: set[ChannelName] = set()
    other_histories: list[Lane] = []
    for lane, receiver in pipeline.lanes.items():
        if not receiver.remembers or lane.channel in silent:
            continue
        claimed = yield ClaimLane(lane)
        if not isinstance(claimed, LaneClaimed) or claimed.standing.epoch != plan.epoch:
            continue
        installation = claimed.standing.installation.outside
        match (yield ClaimAtReceiver(lane, plan.epoch, claimed.incarnation, installation)):
            case Welcome() as welcome if not receivers.is_of(claimed.standing.lineage, welcome):
                other_histories.append(lane)
            case Unreachable() | Indefinite():
                silent.add(lane.channel)
    return tuple(other_histories)
