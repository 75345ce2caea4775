"""One scheduler, one thread: processes take turns by a simulated clock, and every step may be the last.

A process is a generator. Its next effect waits in a queue ordered by time; when it is due, the faults of
that step are applied, the world executes the effect, and the generator goes on with the result. A crash
drops the generator before or after the effect. A frozen process keeps its effect and goes on much later, as
a zombie; its supervisor believes it dead and starts another one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

from zerotail import ports
from zerotail.core.identity import SiteName
from zerotail.errors import Broken, Misused, ZerotailError
from zerotail.simulation import plan as plans
from zerotail.simulation.parts import BLOCKED, INDEFINITE, UNREACHABLE, Actor
from zerotail.simulation.plan import Fault
from zerotail.simulation.world import World

MAY_BE_LOST: frozenset[type[ports.Effect]] = frozenset(
    {
        ports.Submit,
        ports.SendRecords,
        ports.Commit,
        ports.RequestAgain,
        ports.RecordPoison,
        ports.ClaimLane,
        ports.RecordIntent,
        ports.RecordAcknowledged,
        ports.RecordDoubts,
        ports.SettleDoubts,
        ports.ClaimAtReceiver,
        ports.SendEmissions,
        ports.Promote,
        ports.OpenEpoch,
        ports.ChangeEpoch,
        ports.StoreStart,
        ports.RecordRejoined,
    }
)
"""Effects that change something outside the process: their answer may get lost, and they may arrive late."""

_LEAVES_THE_SITE = (ports.SendEmissions, ports.ClaimAtReceiver)
"""Effects on their way to the outside, which arrive even when the site is gone."""

_EFFECT_CODES = {
    kind: code
    for code, kind in enumerate(sorted(ports.Effect.__subclasses__(), key=lambda kind: kind.__name__), start=1)
}
_MASK = (1 << 61) - 1


class Process(Actor):
    """One running instance of a role, a client's request or an operator's command."""

    __slots__ = ("code", "effect", "ended", "frozen_until", "name", "started", "story", "ticket")

    def __init__(self, name: str, code: int, site: SiteName, story: ports.Story[Any]) -> None:
        super().__init__(site)
        self.lives = True
        self.name = name
        self.code = code
        self.story = story
        self.effect: ports.Effect | None = None
        self.ended: Callable[[Process, Any], None] | None = None
        """Called with what came of it; not called when the process is dropped."""
        self.frozen_until = 0
        self.started = False
        self.ticket = 0
        """Its valid place in the queue; an older one is ignored."""

    def ghost(self, effect: ports.Effect) -> Actor:
        """Who is on the way with a request whose answer this process will not hear.

        A producer of which nobody knows what became of its batch goes with it.
        """
        ghost = Actor(self.site, self.read_at)
        if type(effect) is ports.SendEmissions:
            ghost.producer, self.producer = self.producer, 0
        return ghost


class Crashed:
    """What a supervisor is told instead of a result."""


CRASHED = Crashed()


class Schedule:
    """The queue, the clock and the trace."""

    def __init__(self, world: World, random: Random, faults: tuple[Fault, ...]) -> None:
        self.world = world
        self.random = random
        self.step = 0
        """Effects executed so far: the number that faults refer to."""
        self.crashes = 0
        self.trace = 0
        self.broken: list[tuple[int, str, str]] = []
        """Steps at which a process found an invariant broken."""
        self.died: list[Exception] = []
        """What processes died of that nobody expects: as a rule, a handler's own mistake."""
        self.reached: set[int] = set()
        self.marks = world.marks
        self.story: list[str] | None = None
        """What happened, line by line, when somebody wants to read it."""
        self.apply_fault: Callable[[Fault], None] = lambda _: None
        self.freeze: Callable[[Process, Fault], None] = lambda _, __: None
        self.second: Callable[[Process], None] = lambda _: None
        self.healed = False
        self._faults: dict[int, list[Fault]] = {}
        for fault in faults:
            self._faults.setdefault(fault.step, []).append(fault)
        self._queue: list[tuple[int, int, Any]] = []
        self._sequence = 0
        self.processes: dict[Process, None] = {}

    # Starting and ending.

    def start(self, process: Process, delay: int = 0) -> None:
        """Let a process begin."""
        self.processes[process] = None
        self.at(self.world.time + delay + 1, process)

    def at(self, time: int, item: Process | Callable[[], None]) -> None:
        """Queue a process, or anything else that has to happen at a time."""
        self._sequence += 1
        if isinstance(item, Process):
            item.ticket = self._sequence
        heapq.heappush(self._queue, (time, self._sequence, item))

    def drop(self, process: Process) -> None:
        """A process is gone; what its session waits for stays in the database."""
        self.processes.pop(process, None)
        process.lives = False
        process.story.close()

    def tell(self, line: str) -> None:
        """Add a line to the story, if somebody listens."""
        if self.story is not None:
            self.story.append(f"{self.step:>5}  {line}")

    def mark(self, name: str) -> None:
        """A rare state was reached."""
        self.world.mark(name)

    # Turns.

    def turn(self) -> bool:
        """Let the next thing happen; False when nothing is left to happen."""
        if not self._queue:
            return False
        time, sequence, item = heapq.heappop(self._queue)
        self.world.time = max(self.world.time, time)
        if not isinstance(item, Process):
            item()
            return True
        if item.ticket != sequence or item not in self.processes:
            return True
        if item.frozen_until > time:
            self.at(item.frozen_until, item)
            return True
        if item.effect is None:
            item.started = True
            self._resume(item, None)
        elif type(item.effect) is ports.Pause:
            self._resume(item, None)
        elif item.waiting is not None:
            self._execute(item, item.effect)
        else:
            self._step(item, item.effect)
        return True

    def _step(self, process: Process, effect: ports.Effect) -> None:
        """One effect, with the faults of this step."""
        self.step += 1
        code = process.code * 64 + _EFFECT_CODES[type(effect)]
        self.trace = (self.trace * 1_000_003 + code * 8191 + self.world.time) & _MASK
        faults = self._faults.pop(self.step, None)
        if faults is None or self.healed:
            self._execute(process, effect)
            return
        for fault in faults:
            if fault.kind not in plans.PROCESS_FAULTS:
                self.apply_fault(fault)
        if process not in self.processes:
            return
        for fault in faults:
            if fault.kind in plans.PROCESS_FAULTS and process in self.processes:
                self._hit(process, effect, fault)
                return
        self._execute(process, effect)

    def _hit(self, process: Process, effect: ports.Effect, fault: Fault) -> None:
        """A fault of the process whose effect it is."""
        kind = fault.kind
        self.reached.add(process.code * 1024 + _EFFECT_CODES[type(effect)] * 8 + _KIND_CODES[kind])
        self.tell(f"{process.name}: {kind} at {describe(effect)}")
        if kind == plans.CRASH_BEFORE:
            self._crash(process)
        elif kind == plans.CRASH_AFTER:
            self.world.execute(process, effect)
            self._crash(process)
        elif kind == plans.FREEZE:
            self.freeze(process, fault)
        elif kind == plans.SECOND:
            self.second(process)
            self._execute(process, effect)
        elif type(effect) not in MAY_BE_LOST:
            self._resume(process, UNREACHABLE)
        elif kind == plans.LOSE_ANSWER:
            self.world.execute(process.ghost(effect), effect)
            self._resume(process, INDEFINITE)
        elif kind == plans.LOSE_REQUEST:
            process.ghost(effect)
            self._resume(process, INDEFINITE)
        else:
            ghost = process.ghost(effect)
            self.at(self.world.time + 1 + fault.length, lambda: self._arrive_late(ghost, process.name, effect))
            self._resume(process, INDEFINITE)

    def _arrive_late(self, ghost: Actor, name: str, effect: ports.Effect) -> None:
        if self.world.site_up[ghost.site] or type(effect) in _LEAVES_THE_SITE:
            self.mark("request arrived late")
            self.tell(f"{name}: a late {describe(effect)} arrives")
            self.world.execute(ghost, effect)

    def _crash(self, process: Process) -> None:
        self.crashes += 1
        self.drop(process)
        if process.ended:
            process.ended(process, CRASHED)

    def _execute(self, process: Process, effect: ports.Effect) -> None:
        result = self.world.execute(process, effect)
        if result is BLOCKED:
            self.at(self.world.time + 6, process)
            return
        self._resume(process, result)

    def _resume(self, process: Process, result: Any) -> None:
        """Let a process go on to its next effect."""
        if self.story is not None and process.effect is not None and type(process.effect) is not ports.Pause:
            self.tell(f"{process.name}: {describe(process.effect)} -> {describe(result)}")
        try:
            effect = process.effect = process.story.send(result)
        except StopIteration as stop:
            self._end(process, stop.value)
            return
        except Broken as error:
            self.broken.append((self.step, process.name, error.message))
            self.tell(f"{process.name}: BROKEN: {error.message}")
            self._end(process, error)
            return
        except Misused as error:
            self.died.append(error)
            self._end(process, error)
            return
        except ZerotailError as error:
            self.tell(f"{process.name}: {type(error).__name__}: {error.message}")
            self._end(process, error)
            return
        except Exception as error:  # noqa: BLE001 - whatever a story dies of is a finding of the run
            self.died.append(error)
            self.broken.append((self.step, process.name, f"{type(error).__name__}: {error}"))
            self._end(process, error)
            return
        if type(effect) is ports.Pause:
            delay = 8 + self.random.getrandbits(4)
        else:
            delay = 1 + self.random.getrandbits(2)
        self.at(self.world.time + delay, process)

    def _end(self, process: Process, value: Any) -> None:
        self.processes.pop(process, None)
        process.lives = False
        if process.ended:
            process.ended(process, value)


_KIND_CODES = {kind: code for code, kind in enumerate(plans.PROCESS_FAULTS)}


def describe(value: Any) -> str:
    """An effect or a result in a few words, for the story."""
    name = type(value).__name__
    match value:
        case ports.SendEmissions():
            last = value.first + len(value.values) - 1
            why = "exposed" if value.release.answer is None else "gate"
            return f"SendEmissions {value.lane.channel}/{value.lane.partition} {value.first}..{last} ({why})"
        case ports.Commit():
            runs = ", ".join(f"{producer}:{first}x{count}" for producer, first, count in value.segment.runs)
            return f"Commit {value.stage}/{value.partition} segment {value.segment.segment} [{runs}]"
        case ports.SendRecords():
            some = ", ".join(
                f"{producer}:{serial}"
                for producer, serial in zip(value.records.producers, value.records.serials, strict=True)
            )
            return f"SendRecords {value.topic}/{value.partition} [{some}]"
        case ports.Submit() | ports.OpenEpoch() | ports.ChangeEpoch() | ports.Refused() | ports.Accepted():
            fields = ", ".join(
                f"{field}={getattr(value, field)}" for field in value.__struct_fields__ if field != "value"
            )
            return f"{name}({fields})"
        case _:
            return name
