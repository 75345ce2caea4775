"""A plan of an act: what was seen, what would be done, what the operator has to state.

Its id is a digest of all that matters of it. Whoever carries it out looks again; when the world has changed meanwhile,
the plan is another one, its id differs, and nothing is done. So no plan has to be stored.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from zerotail.core.identity import Epoch, SiteName
from zerotail.core.takeover import Step
from zerotail.errors import Refused

TAKEOVER, HANDOVER, FAILBACK, REJOIN = "takeover", "handover", "failback", "rejoin"

_MISSING = {
    "--accept-unfenced-site": (
        "{site} is live, by what its own database says.",
        "After a takeover it can release nothing more, but what clients submit there would be lost.",
    ),
    "--accept-lost-site": (
        "nobody has stated that {site} is out and will not take over.",
        "Two sites that both go on alone would send two different histories.",
    ),
    "--accept-loss": (
        "this copy may lack what was sent while it had no standby.",
        "Going on here could send other messages under the same numbers.",
    ),
    "--accept-age": (
        "the copy is old, and nobody has stated that nothing has happened since.",
        "The other site may have worked without it.",
    ),
    "--accept-version": (
        "segments that other code made would be replayed.",
        "If the code does something else with old records, the replay ends in the middle.",
    ),
    "--accept-lost-database": (
        "the database of {site} does not answer, so nobody knows whether it has gone on alone.",
        "Replacing it would destroy the only copy of what it has sent.",
    ),
}
"""Why each statement is needed: the facts, and why they matter."""
_OTHERWISE = {
    "--accept-unfenced-site": "zerotail handover plan --to {plan.site}    # if {plan.other} is well",
    "--accept-lost-database": "zerotail rejoin plan --site {plan.site}    # when it answers",
}
"""What else can be typed."""

STEP_NAMES = {
    Step.STOP_WAITING: "stop waiting",
    Step.FENCE: "fence",
    Step.PROMOTE: "promote",
    Step.OPEN_EPOCH: "open epoch",
    Step.REBUILD: "rebuild",
    Step.FILL: "store starts",
    Step.HANDSHAKE: "claim lanes",
    Step.GO_LIVE: "go live",
}
COPY = "copy the database"
"""Of a rejoin."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a step may take."""

    step: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ActPlan:
    """What an act would do now."""

    act: str
    site: SiteName
    """The site that becomes active; of a rejoin, the one that comes back."""
    other: SiteName
    id: str
    done: bool
    """Nothing is left to do."""
    epoch: Epoch
    """In force when it is done."""
    seen: tuple[str, ...]
    steps: tuple[str, ...]
    needs: tuple[str, ...]
    """What the operator has to state, as flags."""
    options: tuple[str, ...] = ()
    """How else it was asked for, as flags."""
    age: tuple[str, ...] = ()
    """Of a takeover: how old the copy is. It grows while one reads, so the id does not cover it."""
    limits: tuple[Limit, ...] = ()
    """How long each step may take."""
    deadline_seconds: float = 0.0
    """The act has ended so long after it began, done or not."""


def make_plan(
    act: str,
    site: SiteName,
    other: SiteName,
    epoch: Epoch,
    *,
    seen: tuple[str, ...],
    steps: tuple[str, ...],
    needs: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
    age: tuple[str, ...] = (),
    limits: tuple[Limit, ...] = (),
) -> ActPlan:
    """A plan with its id; what the options change must be said in the steps."""
    content = json.dumps([act, site, other, epoch, seen, steps, needs])
    digest = hashlib.sha256(content.encode()).hexdigest()[:10]
    seconds = sum(limit.seconds for limit in limits)
    return ActPlan(act, site, other, digest, not steps, epoch, seen, steps, needs, options, age, limits, seconds)


def require_same(plan: ActPlan, identifier: str) -> None:
    """`Refused` when the world is not the one in which the plan of this id was made."""
    if plan.id != identifier:
        raise Refused(
            f"plan {identifier} does not fit any more: the {plan.act} of now is plan {plan.id}.",
            code="ZT451",
            why="\n".join(("Since it was printed, or in what was asked for, something has changed. Now:", *plan.seen)),
            tries=(plan_line(plan),),
        )


def require_accepted(plan: ActPlan, accepted: tuple[str, ...]) -> None:
    """`Refused` when a statement is missing that the plan needs."""
    missing = next((need for need in plan.needs if need not in accepted), None)
    if missing is not None:
        flag, _, site = missing.partition(" ")
        message, why = _MISSING[flag]
        otherwise = [_OTHERWISE[flag].format(plan=plan)] if flag in _OTHERWISE else []
        raise Refused(
            message.format(site=site, act=plan.act),
            code="ZT450",
            why="\n".join((why.format(site=site), *plan.seen, *plan.age)),
            tries=(*otherwise, run_line(plan)),
        )


def plan_line(plan: ActPlan) -> str:
    """The line that shows this plan anew."""
    stated = plan.needs if plan.act == TAKEOVER else ()  # a rejoin is told what to state by its plan
    return f"zerotail {plan.act} plan{_target(plan)}{_flags(plan.options)}{_flags(stated)}"


def resume_line(plan: ActPlan) -> str:
    """The line that finishes this act when it was interrupted; a rejoin is planned and run again."""
    return plan_line(plan) if plan.act == REJOIN else f"zerotail {plan.act} resume"


def run_line(plan: ActPlan) -> str:
    """The line that carries this plan out."""
    confirmed = f" --plan {plan.id} --confirm {plan.site}"
    return f"zerotail {plan.act} run{_target(plan)}{_flags(plan.options)}{confirmed}{_flags(plan.needs)}"


def _flags(flags: tuple[str, ...]) -> str:
    return "".join(f" {flag}" for flag in flags)


def _target(plan: ActPlan) -> str:
    return {FAILBACK: "", REJOIN: f" --site {plan.site}"}.get(plan.act, f" --to {plan.site}")
