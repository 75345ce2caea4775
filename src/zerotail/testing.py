"""Test a handler in a simulated pair of sites, without any server.

    result = Simulation(Settle(), producers=2, partitions=2).run(instructions, crash_at=[7, 30])
    assert result.verdict.passed

The handler runs inside the real protocol: producers, stages, gate, emitters, takeover. `crash_at` names
steps at which whatever is running there dies; `lose_site_at` a step at which the active site is lost for
good and the other one takes over. The result is what the outside accepted and the state in the end, and a
verdict by the rules of `docs/verdicts.md`. The same arguments give the same result, in milliseconds.

A handler that uses a clock, a random source or a memory of its own gives another answer when its journal is
replayed: the verdict then says S11, and at which record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zerotail.core.emission import Lane
from zerotail.core.identity import PartitionNumber, ProducerNumber
from zerotail.core.receiver import DoubtPolicy, ReceiverClass
from zerotail.errors import Misused
from zerotail.handler import Handler, Value, decode_value, encode_value
from zerotail.simulation import plan as plans
from zerotail.simulation.history import check_run
from zerotail.simulation.judge import Watch, judge
from zerotail.simulation.plan import Fault, Plan
from zerotail.simulation.run import Instruction, Run
from zerotail.simulation.topology import make_topology
from zerotail.simulation.violation import Violation

__all__ = ["Accepted", "Instruction", "Result", "Simulation", "Verdict"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that the outside accepted."""

    channel: str
    partition: int
    number: int
    value: Value


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether any rule broke."""

    violations: tuple[Violation, ...]

    @property
    def passed(self) -> bool:
        """Whether none did."""
        return not self.violations

    def __str__(self) -> str:
        if self.passed:
            return "passed"
        lines = [f"{violation.rule}: {violation.text}" for violation in self.violations]
        if any(violation.rule == "S11" for violation in self.violations):
            lines.append(
                "The handler gave another answer when its journal was replayed: it depends on something "
                "beside its record, the state it named and what it was given (a clock, a random source, "
                "a global)."
            )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run."""

    accepted: tuple[Accepted, ...]
    """What the outside accepted, in order, per channel and partition."""
    state: Mapping[int, Mapping[str, Value]]
    """The state in the end, by partition and key."""
    applied: int
    """How many instructions the handler was applied to, once each."""
    crashes: int
    steps: int
    verdict: Verdict


class Simulation:
    """Two simulated sites with one stage that runs `handler`.

    `channels` names the channels on which the handler emits, and what their receivers can do.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        producers: int = 2,
        partitions: int = 1,
        channels: Mapping[str, str] | None = None,
        batch: int = 3,
        seed: int = 0,
    ) -> None:
        self._handler = handler
        self._producers = producers
        self._partitions = partitions
        self._channels = {name: ReceiverClass(of) for name, of in (channels or {"bank": "R2"}).items()}
        self._batch = batch
        self._seed = seed

    def instructions(self, values: Iterable[Value]) -> list[Instruction]:
        """Values as instructions, dealt to producers and partitions in turn."""
        dealt: list[Instruction] = []
        for number, value in enumerate(values):
            producer = ProducerNumber(1 + number % self._producers)
            partition = PartitionNumber(number // self._producers % self._partitions)
            dealt.append(Instruction(f"i{number}", producer, partition, encode_value(value)))
        return dealt

    def run(
        self,
        instructions: Iterable[Value] | Sequence[Instruction],
        *,
        crash_at: Sequence[int] = (),
        lose_site_at: int | None = None,
    ) -> Result:
        """Run the instructions through the handler, crash where told, heal, and judge.

        A record at which the handler fails would stop its partition: here it is `Misused`, with the reason.
        """
        given = list(instructions)
        dealt = given if given and isinstance(given[0], Instruction) else self.instructions(given)
        faults = [Fault(step, plans.CRASH_AFTER) for step in crash_at]
        if lose_site_at is not None:
            faults += [
                Fault(lose_site_at, plans.SITE_DESTROYED, 1 << 20, 1),
                Fault(lose_site_at, plans.TAKEOVER, 0, 2),
            ]
        faults.sort(key=lambda fault: fault.step)
        plan = Plan(
            seed=self._seed,
            partitions=self._partitions,
            producers=self._producers,
            batch=self._batch,
            instructions=len(dealt),
            horizon=(faults[-1].step + 1) if faults else 1,
            faults=tuple(faults),
        )
        topology = make_topology(
            partitions=self._partitions,
            producers=self._producers,
            receiver=ReceiverClass.R2,
            policy=DoubtPolicy.RESEND,
            handler=self._handler,
            channels=self._channels,
        )
        run = Run(plan, topology, dealt)
        watch = Watch(run.world)
        run.world.witness = watch
        watch.keep = True
        run.go()
        if run.schedule.died:
            raise run.schedule.died[0]
        for poison in run.world.servers[run.world.active].table("poison").values():
            raise Misused(
                f"the handler fails at serial {poison.serial} of producer {poison.producer}: {poison.reason}",
                code="ZT702",
                why="The partition stops there until an operator decides about the record.",
            )
        violations = judge(run, watch) or check_run(run, watch)
        return _result(run, tuple(violations))


def _result(run: Run, violations: tuple[Violation, ...]) -> Result:
    server = run.world.servers[run.world.active]
    state: dict[int, dict[str, Any]] = {}
    for (_, partition, key), value in server.table("state").items():
        if value is not None:
            state.setdefault(partition, {})[key] = decode_value(value)
    accepted = [
        Accepted(lane.channel, lane.partition, attempt.number, decode_value(attempt.value))
        for lane, receiver in sorted(run.world.receivers.items(), key=_lane_order)
        for attempt in receiver.accepted
    ]
    applied = sum(head.next_position for head in server.tables["heads"].values())
    schedule = run.schedule
    return Result(tuple(accepted), state, applied, schedule.crashes, schedule.step, Verdict(violations))


def _lane_order(item: tuple[Lane, Any]) -> Lane:
    return item[0]
