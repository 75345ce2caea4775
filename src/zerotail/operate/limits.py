"""How long an act may take: a limit for each of its steps, of which the plan names the sum.

1. Whoever waits for something that comes no nearer gives up after `STANDSTILL_SECONDS`, long before the deadline.
2. At the deadline the act ends wherever it is, as if somebody had interrupted it: what is left is done by its `resume`.
3. What a limit is made of: commands and databases have time-outs of their own, and a limit lies above their sum. Where
   everything is copied or read again it is a day's work, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from zerotail.config import Configuration, TopicChannel
from zerotail.core.epoch import Durability
from zerotail.core.takeover import HANDED_OVER, Step, Strategy, TakeoverPlan
from zerotail.operate.command import ATTACH_SECONDS, COMMAND_SECONDS
from zerotail.operate.plan import STEP_NAMES, Limit
from zerotail.postgres.tail import TAIL_SECONDS

STANDSTILL_SECONDS = 60.0
LOOK_SECONDS = 30.0
"""For looking at both sites, before and between the steps."""
_ANSWER_SECONDS = 15.0
"""A database that is asked something short."""
_PROMOTION_SECONDS = 75.0
_GATE_SECONDS = 300.0
"""The other site has to receive the log first."""
_LONG_SECONDS = ATTACH_SECONDS
_PARTITION_SECONDS = 15.0
_LOOKS = Limit("look at both sites", LOOK_SECONDS)


def limits_of_takeover(configuration: Configuration, plan: TakeoverPlan, strategy: Strategy) -> tuple[Limit, ...]:
    """Of each step of a takeover."""
    return (_LOOKS, *_steps(configuration, plan.steps, plan.durability, strategy)) if plan.steps else ()


def limits_of_handover(configuration: Configuration, strategy: Strategy) -> tuple[Limit, ...]:
    """Of a handover, which contains a takeover and a rejoin."""
    return (
        _LOOKS,
        Limit("drain", STANDSTILL_SECONDS + _ANSWER_SECONDS),
        Limit("stop the old primary", COMMAND_SECONDS + _ANSWER_SECONDS),
        *_steps(configuration, HANDED_OVER, Durability.EXPOSED, strategy),
        *limits_of_rejoin(copies=True, keeps=False, gates=True)[1:],
    )


def limits_of_rejoin(*, copies: bool, keeps: bool, gates: bool) -> tuple[Limit, ...]:
    """Of a rejoin: of the steps that it has."""
    limits = [_LOOKS]
    limits += [Limit("keep the tail", TAIL_SECONDS + 4 * _ANSWER_SECONDS)] if keeps else []
    limits += [Limit("note the return", _ANSWER_SECONDS), Limit("copy the database", ATTACH_SECONDS)] if copies else []
    return (*limits, Limit("back to gated", _GATE_SECONDS)) if copies or gates else ()


def _steps(
    configuration: Configuration, steps: Iterable[Step], durability: Durability, strategy: Strategy
) -> tuple[Limit, ...]:
    return tuple(Limit(STEP_NAMES[step], _limit_of(configuration, durability, step, strategy)) for step in steps)


def _limit_of(configuration: Configuration, durability: Durability, step: Step, strategy: Strategy) -> float:
    settings = configuration.takeover
    partitions = sum(configuration.topics[stage.consumes].partitions for stage in configuration.stages.values())
    match step:
        case Step.FENCE:
            return COMMAND_SECONDS if settings.fence else 0.0
        case Step.PROMOTE:
            return _PROMOTION_SECONDS + (COMMAND_SECONDS if settings.promote else 0.0)
        case Step.REBUILD:
            replays = any(stage.state == "replay" for stage in configuration.stages.values())
            return _LONG_SECONDS if replays else 0.0
        case Step.FILL:
            reads_all = strategy.proves or strategy is Strategy.FOLLOWER
            return _LONG_SECONDS if reads_all else _GATE_SECONDS + _PARTITION_SECONDS * partitions
        case Step.HANDSHAKE if durability is Durability.EXPOSED:
            outside = [one for one in configuration.channels.values() if not isinstance(one, TopicChannel)]
            return _GATE_SECONDS + sum(one.timeout.total_seconds() for one in outside)
        case Step.GO_LIVE if durability is Durability.GATED:
            return _GATE_SECONDS
        case _:
            return _ANSWER_SECONDS
