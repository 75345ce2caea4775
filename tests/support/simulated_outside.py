"""Receivers of the simulated world, behind the same door as real ones: one body of tests asks both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.outside import Arrived, Outside
from zerotail import ports
from zerotail.channel.receiver import ClaimAnswer, SendAnswer
from zerotail.core.emission import Lane
from zerotail.core.receiver import DoubtPolicy, ReceiverClass
from zerotail.simulation.outside import Kind
from zerotail.simulation.parts import EAST, INDEFINITE, UNREACHABLE
from zerotail.simulation.schedule import Process
from zerotail.simulation.topology import make_topology
from zerotail.simulation.world import World

LANES = 64
"""Of each channel; every test takes one that nobody has used."""


class SimulatedReceivers:
    """The receivers of one world, all of one kind and class."""

    def __init__(self, name: str, receiver: ReceiverClass, kind: Kind) -> None:
        topology = make_topology(
            partitions=LANES,
            producers=1,
            receiver=receiver,
            policy=DoubtPolicy.HOLD,
            channels={name: receiver},
            kind=kind,
        )
        self.world = World(topology, synchronous=False)
        self.is_frozen = False
        self._late: list[Callable[[], object]] = []

    def freeze(self) -> None:
        """From now on requests arrive, and wait."""
        self.is_frozen = True

    def thaw(self) -> None:
        """What has waited is carried out now, and nobody hears the answers."""
        self.is_frozen = False
        while self._late:
            self._late.pop(0)()

    @contextmanager
    def down(self) -> Iterator[None]:
        """Out of reach."""
        self.world.outside_up[EAST] = False
        try:
            yield
        finally:
            self.world.outside_up[EAST] = True

    def arrived(self, lane: Lane) -> Arrived:
        """What had an effect, in order."""
        return [(one.number, one.value) for one in self.world.receivers[lane].accepted]

    def ask(self, process: Process, effect: ports.Effect) -> Any:
        """Carry out an effect as the schedule of a run does."""
        if not self.is_frozen:
            return self.world.execute(process, effect)
        if not isinstance(effect, ports.SendEmissions):
            return UNREACHABLE
        ghost = process.ghost(effect)
        self._late.append(lambda: self.world.execute(ghost, effect))
        return INDEFINITE


class SimulatedSender:
    """One start of a sender."""

    def __init__(self, receivers: SimulatedReceivers) -> None:
        self._receivers = receivers
        self._process = Process("sender", 0, EAST, _nothing())

    def claim(self, effect: ports.ClaimAtReceiver) -> ClaimAnswer:
        """Say who sends from now on."""
        answer: ClaimAnswer = self._receivers.ask(self._process, effect)
        return answer

    def send(self, effect: ports.SendEmissions) -> SendAnswer:
        """Send one batch."""
        answer: SendAnswer = self._receivers.ask(self._process, effect)
        return answer

    def close(self) -> None:
        """Nothing is held."""


def _nothing() -> ports.Story[None]:
    yield ports.Pause("")


def simulated_outside(kind: Kind, receiver: ReceiverClass) -> Outside:
    """A simulated receiver of this kind and class."""
    name = f"simulated-{kind.value}-{receiver.value}"
    receivers = SimulatedReceivers(name, receiver, kind)
    return Outside(
        name,
        receiver,
        lambda _lane, _seconds: SimulatedSender(receivers),
        receivers.arrived,
        receivers.freeze,
        receivers.thaw,
        receivers.down,
    )
