"""One run: two sites, clients, supervisors, faults; then everything is healed and must come to rest.

1. Safety: processes run, faults happen, nothing wrong may ever reach the outside.
2. Healing: no more faults; zombies thaw; operators bring the sites back together.
3. Liveness: within a bound of steps every instruction is accepted and applied, every message is at its
   receiver, and the standby holds all of it (I16).

Then the run is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from zerotail import ports
from zerotail.core.emission import Lane
from zerotail.core.identity import PartitionNumber, ProducerNumber, SiteName
from zerotail.failover.follow import follow
from zerotail.flow.emit import Sender, emit
from zerotail.flow.produce import produce
from zerotail.flow.stage import run_stage
from zerotail.flow.submit import submit
from zerotail.handler import decode_value, encode_value
from zerotail.simulation.faults import Faults
from zerotail.simulation.kafka import MOST_RECORD_BYTES
from zerotail.simulation.operators import Operators
from zerotail.simulation.parts import NOT_LIVE, NUMBER, OTHER, READ_ONLY, SITES, Topology
from zerotail.simulation.plan import Fault, Plan
from zerotail.simulation.schedule import CRASHED, Process, Schedule
from zerotail.simulation.topology import FLAWS, make_topology
from zerotail.simulation.world import World

SAFETY_TIME = 20_000
LIVENESS_TIME = 12_000
_TRY_AGAIN = (READ_ONLY, NOT_LIVE)
"""Answers of a site that takes nothing now; every other refusal is of the instruction itself."""
_TOO_LARGE = bytes(MOST_RECORD_BYTES + 1)
"""In ticks of the simulated clock; an effect takes one to four, a pause eight to twenty-three."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a client wants to be done, once."""

    identifier: str
    producer: ProducerNumber
    partition: PartitionNumber
    value: bytes


@dataclass(frozen=True, slots=True)
class Role:
    """A process that a supervisor keeps running at a site."""

    name: str
    code: int
    site: SiteName
    make: Callable[[], ports.Story[Any]]
    follower: bool = False


class Client:
    """Submits the instructions of one producer, one after the other, until each is accepted."""

    __slots__ = ("accepted", "attempt", "code", "instructions", "invoked", "run")

    def __init__(self, run: Run, code: int, instructions: Sequence[Instruction]) -> None:
        self.run = run
        self.code = code
        self.instructions = list(instructions)
        self.invoked: list[tuple[int, Instruction, int]] = []
        """Moment, instruction, number of the attempt."""
        self.accepted: list[tuple[int, Instruction, Any]] = []
        """Moment, instruction, and the serial, or why not."""
        self.attempt = 0

    def next(self) -> None:
        """Ask for the next instruction, at the site that is believed active; sometimes at the other one."""
        if not self.instructions:
            return
        world, schedule = self.run.world, self.run.schedule
        instruction = self.instructions[0]
        self.attempt += 1
        site = world.active
        if not schedule.healed and schedule.random.getrandbits(4) == 0:
            site = OTHER[site]
        story = submit(
            instruction.producer,
            instruction.partition,
            instruction.identifier,
            instruction.value,
            accept_exposed=not world.clients_wait,
        )
        process = Process(f"client {instruction.identifier}", self.code, site, story)
        process.ended = self._ended
        self.invoked.append((world.moment, instruction, self.attempt))
        schedule.start(process)

    def _ended(self, process: Process, value: Any) -> None:
        world, schedule = self.run.world, self.run.schedule
        instruction = self.instructions[0]
        self.accepted.append((world.moment, instruction, value))
        if isinstance(value, int):
            world.witness.acknowledged(process.site, instruction.identifier, getattr(value, "durability", "gated"))
            self.instructions.pop(0)
        elif isinstance(value, ports.Refused) and value not in _TRY_AGAIN:
            world.mark("refused at the door")
            self.instructions.pop(0)
        delay = 10 + schedule.random.getrandbits(5)
        if not schedule.healed:
            delay += self.run.spread
        schedule.at(self.run.world.time + delay, self.next)


class Run:
    """A world with everything that moves in it."""

    def __init__(
        self, plan: Plan, topology: Topology | None = None, instructions: Sequence[Instruction] | None = None
    ) -> None:
        self.plan = plan
        self.topology = topology or make_topology(
            partitions=plan.partitions,
            producers=plan.producers,
            receiver=plan.receiver,
            policy=plan.policy,
            two_stages=plan.two_stages,
            kind=plan.kind,
        )
        random = Random(plan.seed ^ 0x5EED)  # noqa: S311
        self.world = World(self.topology, synchronous=plan.synchronous, fence=plan.fence)
        self.world.given = plan.given
        self.world.clients_wait = plan.waiting
        self.schedule = Schedule(self.world, random, plan.faults)
        self.operators = Operators(self.world, self.schedule)
        self.operators.errant = plan.errant
        self.operators.forgetful = plan.forgetful
        self.operators.attentive = plan.poison > 0
        self.operators.random = Random(plan.seed ^ 0x09E7)  # noqa: S311
        self.faults = Faults(self.world, self.schedule, self.operators)
        self.world.power_off = self.faults.power_off = self._power_off
        self.faults.power_on = self.operators.power_on = self._power_on
        self.schedule.apply_fault = self.faults.apply
        self.schedule.freeze = self._freeze
        self.schedule.second = self._second
        self.spread = plan.horizon // 4
        self.instructions = instructions if instructions is not None else draw_instructions(plan, self.topology)
        self.roles = {role.name: role for site in SITES for role in self._roles(site)}
        self._main: dict[str, Process | None] = {}
        """The instance of each role that its supervisor believes to be alive."""
        self.quiet_at: int | None = None
        self.clients = self._clients()

    def _clients(self) -> list[Client]:
        clients: list[Client] = []
        for producer in sorted({one.producer for one in self.instructions}):
            own = [one for one in self.instructions if one.producer == producer]
            clients += [
                Client(self, 800 + len(clients) + number, own[number :: self.plan.clients])
                for number in range(self.plan.clients)
            ]
        return clients

    # Processes and their supervisors.

    def _roles(self, site: SiteName) -> list[Role]:
        plan, topology = self.plan, self.topology
        roles: list[Role] = []

        def add(name: str, make: Callable[[], ports.Story[Any]], *, follower: bool = False) -> None:
            code = NUMBER[site] * 100 + len(roles)
            roles.append(Role(f"{name} at {site}", code, site, make, follower))

        for feed in topology.feeds:
            name = f"producer {feed.producer} {feed.topic}/{feed.partition}"
            add(name, partial(produce, feed, site, limit=plan.batch))
        for stage in topology.stages:
            place = f"{stage.name}/{stage.partition}"
            add(f"stage {place}", partial(run_stage, stage, site, limit=plan.batch))
            add(f"follower {place}", partial(follow, stage, site, limit=plan.batch), follower=True)
        for lane, receiver in topology.lanes.items():
            sender = Sender(lane, receiver, site, topology.policy, plan.window)
            add(f"emitter {lane.channel}/{lane.partition}", partial(emit, sender))
        return roles

    def _supervise(self, role: Role) -> None:
        """Start a role if its site is up and it has something to do there; look again later if not."""
        world, schedule = self.world, self.schedule
        if self._main.get(role.name) or not world.site_up[role.site]:
            return
        server = world.servers[role.site]
        if server.in_recovery != role.follower or not server.up:
            schedule.at(world.time + 100, lambda: self._supervise(role))
            return
        self._start(role)

    def _start(self, role: Role) -> None:
        process = Process(role.name, role.code, role.site, role.make())
        process.ended = self._role_ended
        self._main[role.name] = process
        self.schedule.start(process)

    def _role_ended(self, process: Process, value: Any) -> None:
        self._main[process.name] = None
        delay = 5 if value is CRASHED else 30
        if value is ports.End.SUPERSEDED:
            self.schedule.mark("process superseded")
        role = self.roles[process.name]
        self.schedule.at(self.world.time + delay, lambda: self._supervise(role))

    def _freeze(self, process: Process, fault: Fault) -> None:
        """Stop a process for a while; its supervisor starts another one meanwhile."""
        process.frozen_until = self.world.time + 20 + fault.length * 4
        self.schedule.crashes += 1
        self.schedule.at(process.frozen_until, process)
        role = self.roles.get(process.name)
        if role is not None and fault.choice % 3 and self._main.get(process.name) is process:
            self._main[process.name] = None
            process.ended = self._zombie_ended
            self.schedule.at(self.world.time + 10, lambda: self._supervise(role))

    def _zombie_ended(self, _: Process, __: Any) -> None:
        self.schedule.mark("zombie ended by itself")

    def _second(self, process: Process) -> None:
        role = self.roles.get(process.name)
        if role is not None:
            twin = Process(role.name, role.code, role.site, role.make())
            twin.ended = self._zombie_ended
            self.schedule.start(twin)

    def _power_off(self, site: SiteName) -> None:
        if not self.world.site_up[site]:
            return
        self.world.site_up[site] = False
        self.world.servers[site].crash()
        self.schedule.crashes += 1
        for process in [one for one in self.schedule.processes if one.site == site]:
            self.schedule.drop(process)
            if process.ended and process.name.startswith("client"):
                process.ended(process, CRASHED)
        for role in self.roles.values():
            if role.site == site:
                self._main[role.name] = None

    def _power_on(self, site: SiteName) -> None:
        if self.world.site_up[site]:
            return
        self.world.site_up[site] = True
        if site not in self.world.destroyed:
            self.world.servers[site].start()
        for role in self.roles.values():
            if role.site == site:
                self._supervise(role)

    # The run.

    def go(self) -> Run:
        """From the first step to rest."""
        schedule = self.schedule
        for role in self.roles.values():
            self._supervise(role)
        for client in self.clients:
            client.next()
        schedule.at(3, self._replicate)
        if self.plan.poison:
            schedule.at(30, self._attend)
        self._turn_until(lambda: schedule.step >= self.plan.horizon, SAFETY_TIME)
        self._heal()
        self._turn_until(lambda: self.quiet_at is not None, LIVENESS_TIME)
        return self

    def _turn_until(self, reached: Callable[[], bool], time: int) -> None:
        end = self.world.time + time
        while not reached() and self.world.time < end and self.schedule.turn():
            pass

    def _replicate(self) -> None:
        bits = self.schedule.random.getrandbits(8)
        if self.schedule.healed:
            bits |= 0b1001
        elif bits & 0b111000 == 0:
            self.world.write_background()
        self.world.replicate(bits & 7, (bits >> 3) & 7)
        self.schedule.at(self.world.time + 4 + (bits >> 6), self._replicate)

    def _attend(self) -> None:
        """Operators look now and then whether a partition waits for them."""
        if not self.schedule.healed:
            delay = self.operators.look_at_poison()
            self.schedule.at(self.world.time + delay, self._attend)

    def _heal(self) -> None:
        self.schedule.healed = True
        self.schedule.tell("everything is healed")
        self.faults.end_all()
        self._look()

    def _look(self) -> None:
        """An operator looks, until all is at rest."""
        self.operators.heal(self.plan.heal)
        if self._at_rest():
            self.quiet_at = self.schedule.step
        else:
            self.schedule.at(self.world.time + 40, self._look)

    def _at_rest(self) -> bool:
        """Everything accepted, applied, sent, and held by the standby."""
        if any(client.instructions for client in self.clients):
            return False
        if any(self.operators.running(name) for name in self.operators.busy):
            return False
        world = self.world
        server, other = world.servers[world.active], world.servers[OTHER[world.active]]
        left = world.left(server)
        return (
            not (left.instructions or left.emissions or left.doubts)
            and server.lineage.current.durability.value == "gated"
            and other.site not in world.destroyed
            and other.in_recovery
            and other.follows(server)
            and len(other.log) == len(server.log)
            and other.replayed == len(other.log)
        )


def draw_instructions(plan: Plan, topology: Topology) -> list[Instruction]:
    """Instructions for every producer that is not a stage."""
    random = Random(plan.seed ^ 0x1257)  # noqa: S311
    flaws = Random(plan.seed ^ 0xF1A3)  # noqa: S311
    careless = Random(plan.seed ^ 0xCA2E)  # noqa: S311
    producers = sorted({feed.producer for feed in topology.feeds if feed.lane is None})
    instructions: list[Instruction] = []
    for number in range(plan.instructions):
        producer = producers[number % len(producers)]
        partition = PartitionNumber(random.randrange(plan.partitions))
        value = encode_value([random.randrange(3), random.randrange(1, 100)])
        if plan.poison and flaws.randrange(plan.poison) == 0:
            value = _spoiled(value, flaws)
        instruction = Instruction(f"i{number}", producer, partition, value)
        if plan.careless and careless.randrange(plan.careless) == 0:
            instruction = _made_unfit(instruction, instructions, plan.partitions, careless)
        instructions.append(instruction)
    return instructions


def _made_unfit(
    instruction: Instruction, earlier: Sequence[Instruction], partitions: int, random: Random
) -> Instruction:
    """The instruction as one that should not be taken."""
    others = [one for one in earlier if one.producer == instruction.producer and one.value != instruction.value]
    match random.randrange(3):
        case 0:
            return replace(instruction, partition=PartitionNumber(partitions))
        case 1 if others:
            return replace(instruction, identifier=random.choice(others).identifier)
        case _:
            return replace(instruction, value=_TOO_LARGE)


def _spoiled(value: bytes, random: Random) -> bytes:
    """The value with something wrong about it; sometimes it cannot even be read."""
    flaw = random.choice((None, *FLAWS))
    return value[:-1] if flaw is None else encode_value([*decode_value(value), flaw])


__all__ = ["Lane", "Run", "draw_instructions"]
