"""Every crash point of a small run, alone and in pairs, with every way to recover.

The run is as small as it can be and still has everything: a few instructions of two producers, one
partition, one receiver. It is run once without faults to see how many steps it takes. Then a crash is put
before and after each step, and before and after each pair of steps, and each time the system recovers in
one of four ways:

    restart       the supervisor starts the process again
    takeover      the site goes down with it, and the other one takes over
    zombie        the link is cut, the other site takes over, and the old one goes on behind the cut
    failback      the other site takes over, and the role is handed back at the end
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zerotail.core.receiver import ReceiverClass
from zerotail.simulation.campaign import Tally, run_plan
from zerotail.simulation.outside import Kind
from zerotail.simulation.plan import (
    CRASH_AFTER,
    CRASH_BEFORE,
    FREEZE,
    HANDOVER,
    LINK_CUT,
    SITE_DOWN,
    TAKEOVER,
    Fault,
    Plan,
)
from zerotail.simulation.run import Run

RECOVERIES = ("restart", "takeover", "zombie", "failback")
_ALWAYS_ACTIVE = 1
"""A choice that hits the active site."""
_AT_STANDBY = 2
"""A choice that lets an operator take over at the standby, once."""
_LONG = 5000


EVERY_RECEIVER = [(ReceiverClass.R0, kind) for kind in Kind] + [
    (receiver, Kind.HTTP) for receiver in ReceiverClass if receiver is not ReceiverClass.R0
]
"""Every class, and every kind where kinds differ."""


def smallest(receiver: ReceiverClass = ReceiverClass.R2, instructions: int = 2, *, kind: Kind = Kind.HTTP) -> Plan:
    """The small run, without faults."""
    return Plan(seed=1, producers=2, instructions=instructions, receiver=receiver, kind=kind, horizon=1)


def steps_of(plan: Plan) -> int:
    """How many steps the run takes without faults, until all is at rest."""
    return Run(plan).go().schedule.step


def plans(base: Plan, depth: int) -> Iterator[Plan]:
    """Every plan of the small scope: `depth` crashes, each recovery."""
    last = steps_of(base)
    kinds = (CRASH_BEFORE, CRASH_AFTER)
    for first in range(1, last + 1):
        for kind in kinds:
            one = (Fault(first, kind),)
            for recovery in RECOVERIES:
                if depth == 1:
                    yield _recovered(base, one, recovery)
                    continue
                for second in range(first + 1, last + 1):
                    for other in kinds:
                        yield _recovered(base, (*one, Fault(second, other)), recovery)


def _recovered(base: Plan, crashes: tuple[Fault, ...], recovery: str) -> Plan:
    """The crashes, and what follows the first of them."""
    first, last = crashes[0].step, crashes[-1].step
    heal = base.heal
    more: list[Fault] = []
    if recovery == "takeover":
        more = [
            Fault(first + 1, SITE_DOWN, _LONG, _ALWAYS_ACTIVE),
            Fault(first + 2, TAKEOVER, 0, _AT_STANDBY),
        ]
    elif recovery == "zombie":
        more = [
            Fault(first + 1, LINK_CUT, _LONG, _ALWAYS_ACTIVE),
            Fault(first + 2, FREEZE, 100, _ALWAYS_ACTIVE),
            Fault(first + 3, TAKEOVER, 0, _AT_STANDBY),
        ]
    elif recovery == "failback":
        more = [Fault(first + 1, TAKEOVER, 0, _AT_STANDBY)]
        heal = HANDOVER
    faults = tuple(sorted((*crashes, *more), key=lambda fault: fault.step))
    return replace(base, faults=faults, horizon=last + 12, heal=heal)


def exhaust(base: Plan, depth: int, *, share: tuple[int, int] = (0, 1)) -> Tally:
    """Run every plan of the small scope; `share` is (which part, of how many parts)."""
    tally = Tally()
    part, parts = share
    for number, plan in enumerate(plans(base, depth)):
        if number % parts == part:
            run, found = run_plan(plan)
            tally.take(plan, run, found, checked=False)
    return tally
