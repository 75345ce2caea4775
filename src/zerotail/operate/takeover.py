"""Takeover: observe both sites, plan, carry out, report; and finish what an interrupted attempt began."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from zerotail.config import Configuration
from zerotail.config.scalar import read_duration, written_duration
from zerotail.core import takeover as plans
from zerotail.core.completeness import find_beyond
from zerotail.core.emission import Lane
from zerotail.core.epoch import Durability
from zerotail.core.identity import ChannelName, Epoch, SiteName
from zerotail.core.staleness import require_fresh, require_not_superseded
from zerotail.core.takeover import OtherCopy, SiteView, Step, Strategy, TakeoverPlan
from zerotail.deadline import Deadline
from zerotail.errors import Misused, Refused, Unavailable
from zerotail.failover.takeover import Pipeline, carry_out
from zerotail.operate.act import ActReport, Operator, acting, nothing_to_do
from zerotail.operate.limits import limits_of_takeover
from zerotail.operate.notebook import Note
from zerotail.operate.pipeline import read_pipeline
from zerotail.operate.plan import STEP_NAMES, TAKEOVER, ActPlan, make_plan, require_accepted
from zerotail.operate.versions import require_replayable
from zerotail.operate.world import World
from zerotail.postgres.transaction import session_within

_ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Statements:
    """What the operator states, each by a flag of its own."""

    unfenced_site: SiteName | None = None
    lost_site: SiteName | None = None
    loss: bool = False
    age: timedelta | None = None
    """How old the copy may be."""
    strategy: Strategy | None = None
    """How topics are filled; else as the configuration says."""
    rebuild: bool = False
    """Handlers are run over the restored records, and their state is compared."""
    version: bool = False
    """Today's code does the same with old records as the code that made their segments."""

    @property
    def flags(self) -> tuple[str, ...]:
        """As they are typed."""
        flags = [f"--accept-unfenced-site {self.unfenced_site}"] if self.unfenced_site else []
        flags += [f"--accept-lost-site {self.lost_site}"] if self.lost_site else []
        flags += ["--accept-loss"] if self.loss else []
        flags += ["--accept-version"] if self.version else []
        return (*flags, *([f"--accept-age {written_duration(self.age)}"] if self.age is not None else []))

    @property
    def options(self) -> tuple[str, ...]:
        """How the topics are filled, as it is typed."""
        strategy = [f"--strategy {self.strategy}"] if self.strategy else []
        return (*strategy, *(["--rebuild-state"] if self.rebuild else []))

    @classmethod
    def typed(cls, flags: tuple[str, ...]) -> Statements:
        """What was stated by these flags."""
        given = {name: value for name, _, value in (flag.partition(" ") for flag in flags)}
        sites = [given.get(name) for name in ("--accept-unfenced-site", "--accept-lost-site")]
        unfenced, lost = (SiteName(site) if site else None for site in sites)
        age = given.get("--accept-age")
        duration = read_duration(age) if age else None
        return cls(unfenced, lost, "--accept-loss" in given, duration, version="--accept-version" in given)


@dataclass(frozen=True, slots=True)
class PlannedTakeover:
    """A plan as it is shown, and as it is carried out."""

    shown: ActPlan
    steps: TakeoverPlan
    alone: bool
    """The site is active already and goes on without the other one."""
    strategy: Strategy = Strategy.SKIP
    rebuild: bool = False


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of an attempt that was interrupted."""

    promoted: bool = False
    """Its copy was not too old then, and its code is the one that it had."""
    epoch: Epoch | None = None
    """Which it was to open: whoever finishes it opens none below."""


NOT_BEGUN = Begun()


def plan_takeover(
    configuration: Configuration, world: World, site: SiteName, statements: Statements, begun: Begun = NOT_BEGUN
) -> PlannedTakeover:
    """What would make `site` the active one, or let it go on alone, or what is left of that. Whoever is refused hears
    how old the copy is, too.
    """
    try:
        return _plan(configuration, world, site, statements, begun)
    except Refused as refused:
        why = "\n".join(filter(None, (refused.why, *world.told_age(site))))
        raise Refused(refused.message, code=refused.code, why=why, tries=refused.tries) from refused


def _plan(
    configuration: Configuration, world: World, site: SiteName, statements: Statements, begun: Begun
) -> PlannedTakeover:
    other = configuration.other_site(site)
    if statements.lost_site not in (None, other) or statements.unfenced_site not in (None, other):
        raise Misused(
            f"the other site of a takeover to {site} is {other}.",
            code="ZT122",
            tries=(f"--accept-unfenced-site {other}", f"--accept-lost-site {other}"),
        )
    standing, numbers = world.require(site).standing, world.require_numbers(site)
    world.require_rights(site, promotes=configuration.takeover.promote is None)
    flushed, verified = world.require(site).flushed, not standing.waits_for_life
    view = SiteView(site, numbers[site], standing.lineage, standing.timeline, flushed, verified)
    alone = statements.lost_site is not None
    if alone:
        steps = _plan_alone(configuration, world, view, statements, begun)
    else:
        steps = _plan_copy(configuration, world, view, statements, begun)
    old = not alone and not begun.promoted and _is_old(configuration, world, site, statements)
    strategy = strategy_of(configuration, statements.strategy)
    if statements.rebuild and not strategy.reads_all:
        raise Misused(
            f"--rebuild-state needs every record from the first one on, and {strategy} does not read them all.",
            code="ZT142",
            tries=["--strategy ordered-refill", "--strategy unbounded", "--strategy bounded"],
        )
    replays = Step.REBUILD in steps.steps and not begun.promoted
    other_code = replays and require_replayable(configuration, site, accepted=statements.version)
    needs = []
    if steps.steps:
        needs += [f"--accept-lost-site {other}"] if alone else []
        needs += ["--accept-loss"] if statements.loss else []
        needs += ["--accept-version"] if other_code else []
        needs += [flag for flag in statements.flags if old and flag.startswith("--accept-age ")]
        needs += [f"--accept-unfenced-site {other}"] if not alone and world.takes_rows(other) else []
    shown = make_plan(
        TAKEOVER,
        site,
        other,
        steps.epoch,
        seen=(world.told(site), world.told(other)),
        steps=tuple(
            _filled(strategy, rebuild=statements.rebuild)
            if step is Step.FILL
            else _told(configuration, steps, step, other)
            for step in steps.steps
        ),
        needs=tuple(needs),
        options=statements.options,
        age=world.told_age(site),
        limits=limits_of_takeover(configuration, steps, strategy),
    )
    return PlannedTakeover(shown, steps, alone, strategy, statements.rebuild)


def _plan_alone(
    configuration: Configuration, world: World, view: SiteView, statements: Statements, begun: Begun
) -> TakeoverPlan:
    """Without the other site, which is stated to be out. It may have worked since: receivers know."""
    site, other = view.site, configuration.other_site(view.site)
    _require_out(world, site, other)
    _require_fence(configuration, other)
    loss = statements.loss
    behind = require_not_superseded(site, view.lineage, world.claims, accept_loss=loss, lost_site=other)
    fence = configuration.takeover.automatic
    return plans.plan_exposure(view, accept_loss=loss, fence=fence, behind=behind, at_least=begun.epoch)


def _plan_copy(
    configuration: Configuration, world: World, view: SiteView, statements: Statements, begun: Begun
) -> TakeoverPlan:
    """With what is known of the other site's copy, and of receivers."""
    site, other = view.site, configuration.other_site(view.site)
    world.require_end(site)
    there = world.of(other)
    copy = OtherCopy(
        other,
        world.surplus.get(other),
        None if there is None else find_beyond(there.standing.lineage, view.lineage),
        require_not_superseded(site, view.lineage, world.claims, accept_loss=statements.loss),
    )
    old = statements.age is not None if begun.promoted else _is_stale(configuration, world, site)
    return plans.plan_takeover(
        view,
        accept_loss=statements.loss,
        held=world.told_holding(site),
        other=copy,
        old=old,
        at_least=begun.epoch,
    )


def _may_be_old(world: World, site: SiteName) -> bool:
    """Whether the copy is one of another site's epochs, and nothing proves it complete."""
    return world.require(site).standing.lineage.current.site != site and not world.is_proven_fresh(site)


def _is_stale(configuration: Configuration, world: World, site: SiteName) -> bool:
    """Whether the copy is so old that this needs a statement."""
    age, stale_after = world.ages.get(site), configuration.takeover.stale_after.total_seconds()
    return age is not None and age.seconds > stale_after and _may_be_old(world, site)


def _is_old(configuration: Configuration, world: World, site: SiteName, statements: Statements) -> bool:
    """Whether the copy is old, and was stated to be; `Refused` when it is and was not."""
    if not _may_be_old(world, site):
        return False
    age = world.ages.get(site)
    if age is None:  # it was cancelled, or the connection was lost, between two questions
        raise Unavailable(
            f"how old the copy at {site} is could not be read.",
            code="ZT401",
            why="A copy of before would be taken over without a word.",
            tries=(f"zerotail takeover plan --to {site}    # again",),
        )
    accepted = None if statements.age is None else statements.age.total_seconds()
    return require_fresh(site, age, configuration.takeover.stale_after.total_seconds(), accepted)


def plan_rest(
    configuration: Configuration, world: World, site: SiteName, note: Note | None, statements: Statements
) -> PlannedTakeover:
    """What is left of a takeover that was interrupted, with what its operator stated then.

    1. What was stated for a takeover that is finished was stated in another world: it counts no more.
    2. A site that was stated to be out, and answers again, is not out any more: what has begun is finished with it.
    3. Receivers are asked again; and where they are silent now, the number that was planned is kept all the same.
    4. Topics are filled as it was begun, unless another strategy is stated now.
    """
    begun = note if note is not None and note.finished_at is None else None
    stated = Statements.typed(begun.accepted if begun else ())
    if begun is not None and statements.strategy is None:
        statements = replace(statements, strategy=begun.strategy, rebuild=begun.rebuild or statements.rebuild)
    lost = stated.lost_site if stated.lost_site and world.of(stated.lost_site) is None else None
    promoted = world.require(site).standing.timeline is not None
    statements = replace(statements, lost_site=lost, loss=stated.loss, age=stated.age, version=stated.version)
    rest = NOT_BEGUN if begun is None else Begun(promoted, begun.epoch or None)
    return plan_takeover(configuration, world, site, statements, rest)


def run_takeover(operator: Operator, planned: PlannedTakeover, accepted: tuple[str, ...]) -> ActReport:
    """Carry the plan out."""
    if planned.steps.done:
        return nothing_to_do(operator, planned.shown, exposed=planned.steps.durability is Durability.EXPOSED)
    require_accepted(planned.shown, accepted)
    return _carry_out(operator, planned, accepted, resumed=False)


def resume_takeover(operator: Operator, planned: PlannedTakeover) -> ActReport:
    """Finish what an interrupted takeover began; `Refused` when none was begun."""
    note = operator.notebook.find_unfinished((TAKEOVER,), planned.shown.site)
    if planned.steps.done:
        return nothing_to_do(operator, planned.shown, exposed=planned.steps.durability is Durability.EXPOSED)
    begun_elsewhere = Step.PROMOTE not in planned.steps.steps and not planned.alone
    if note is None and not begun_elsewhere:
        raise nothing_begun(TAKEOVER, planned.shown.site)
    accepted = note.accepted if note else ()
    if Step.PROMOTE in planned.steps.steps:
        # Until then nothing has changed, and the other site may be well again. Afterwards it can release nothing.
        require_accepted(planned.shown, accepted)
    return _carry_out(operator, planned, accepted, resumed=True)


def nothing_begun(act: str, site: SiteName | None) -> Refused:
    """There is nothing to resume."""
    where = f" to {site}" if site else ""
    return Refused(f"no {act}{where} was begun and left unfinished.", code="ZT456", tries=[f"zerotail {act} status"])


def _carry_out(operator: Operator, planned: PlannedTakeover, accepted: tuple[str, ...], *, resumed: bool) -> ActReport:
    plan, steps = planned.shown, planned.steps
    pipeline = pipeline_at(operator.configuration, plan.site, planned.strategy, rebuild=planned.rebuild)
    note = operator.notebook.find_unfinished((TAKEOVER,), plan.site) if resumed else None
    began = time.monotonic()
    with acting(operator, plan, accepted, note, strategy=planned.strategy, rebuild=planned.rebuild) as act:
        if Step.FILL in steps.steps:
            act.open_logs(pipeline.stages)
        said = ", ".join([operator.name, *accepted])
        report = act.carry_through(carry_out(pipeline, steps, plan.other, said))
        act.finish()
    seconds = round(time.monotonic() - began, 3)
    return ActReport(
        plan.act,
        plan.site,
        plan.other,
        plan.id,
        True,
        steps.epoch,
        steps.durability is Durability.EXPOSED,
        report.unfenced,
        report.replayed,
        planned.strategy,
        report.refilled,
        report.read,
        accepted,
        tuple(act.reports),
        remarks=(
            *act.remarks,
            *_other_histories(report.other_histories),
            *_measured(seconds, operator.configuration.objectives.takeover),
        ),
        note=str(operator.notebook.folder),
        seconds=seconds,
    )


def _other_histories(lanes: Sequence[Lane]) -> list[str]:
    """A remark for each channel of which lanes stop, because their receiver has messages of another history."""
    partitions: dict[ChannelName, list[str]] = {}
    for lane in lanes:
        partitions.setdefault(lane.channel, []).append(str(lane.partition))
    return [
        f"the receiver of {channel} got its last message of partition {', '.join(found)} in another history: nothing "
        f"is sent there before that is settled (ZT602), all else goes on; zerotail emissions list --channel {channel}"
        for channel, found in partitions.items()
    ]


def _measured(seconds: float, objective: timedelta) -> list[str]:
    """A remark when it took longer than the pair is expected to take."""
    wanted = objective.total_seconds()
    return [f"slower than wanted: {seconds:.1f} s, objectives.takeover says {wanted:g} s"] if seconds > wanted else []


def strategy_of(configuration: Configuration, stated: Strategy | None = None) -> Strategy:
    """How topics are filled: as stated, else as configured."""
    return Strategy(stated or configuration.restore.strategy)


def pipeline_at(
    configuration: Configuration, site: SiteName, strategy: Strategy | None = None, *, rebuild: bool = False
) -> Pipeline:
    """The configured system, with what the database of this site knows of it."""
    dsn = configuration.sites[site].database.dsn.reveal()
    with session_within(dsn, Deadline.after(_ANSWER_SECONDS)) as connection:
        return read_pipeline(configuration, connection, strategy_of(configuration, strategy), rebuild=rebuild)


def _require_out(world: World, site: SiteName, other: SiteName) -> None:
    seen, here = world.of(other), world.of(site)
    # A standby for which nobody keeps the log will not catch up by itself: it is as good as lost until it is copied.
    useless = seen is not None and here is not None and seen.standing.timeline is None and not seen.can_follow(here)
    if seen is not None and not useless:
        raise Refused(
            f"{other} is not out: its database answers.",
            code="ZT457",
            why=f"To go on alone at {site} means that {other} must never take over with what it has.",
            tries=(f"zerotail rejoin plan --site {other}", f"zerotail takeover plan --to {site}"),
        )


def _require_fence(configuration: Configuration, other: SiteName) -> None:
    """`Refused` where the other site may have taken over by itself, and nobody could shut it off first."""
    if configuration.takeover.automatic and configuration.takeover.fence is None:
        raise Refused(
            f"{other} takes over by itself (takeover.automatic: on), and there is no command to shut it off.",
            code="ZT476",
            why="Nobody here can tell a lost site from a cut link: both sites would go on alone.",
            tries=(
                'takeover: {fence: [PROGRAM, "{site}"]}    # in the configuration',
                f"zerotail takeover plan --to {other}    # at {other}: it can release nothing here any more",
            ),
        )


def _told(configuration: Configuration, plan: TakeoverPlan, step: Step, other: SiteName) -> str:
    """A step, in words that say what will be done."""
    settings = configuration.takeover
    match step:
        case Step.STOP_WAITING:
            emptied = "synchronous_standby_names is emptied"
            return f"{STEP_NAMES[step]}: commits of {plan.site} return without {other} ({emptied})"
        case Step.FENCE if settings.fence is not None:
            return f"{STEP_NAMES[step]}: shut {other} off by {settings.fence[0]}"
        case Step.FENCE:
            return f"{STEP_NAMES[step]}: no command is configured, {other} is not shut off; the gate keeps it silent"
        case Step.PROMOTE:
            how = "pg_promote" if settings.promote is None else settings.promote[0]
            return f"{STEP_NAMES[step]}: make the database of {plan.site} a primary, by {how}"
        case Step.OPEN_EPOCH:
            return f"{STEP_NAMES[step]}: {plan.epoch} behind {plan.expected}, {plan.durability.value}"
        case Step.REBUILD:
            replayed = [name for name, stage in configuration.stages.items() if stage.state == "replay"]
            what = f"replay {', '.join(replayed)}" if replayed else "nothing, the state is in the database"
            return f"{STEP_NAMES[step]}: {what}"
        case Step.HANDSHAKE:
            return f"{STEP_NAMES[step]}: shut older senders out at receivers that remember"
        case _:
            return f"{STEP_NAMES[step]}: stages, emitters and producers of {plan.site} may run"


def _filled(strategy: Strategy, *, rebuild: bool) -> str:
    """What becomes of the topics."""
    appended = {
        Strategy.SKIP: "nothing",
        Strategy.FOLLOWER: "what the follower had not written yet",
        Strategy.AUTO: "what the follower had not written yet, if that is little",
    }
    what = appended.get(strategy, f"what is missing and prove it by the journal ({strategy})")
    rebuilt = "; run the handlers over all records and compare the state" if rebuild else ""
    return f"{STEP_NAMES[Step.FILL]}: append {what}{rebuilt}; stages begin where the topics end then"
