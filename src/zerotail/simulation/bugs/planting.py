"""How a bug is registered and planted, and the plans in which some of them can show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from zerotail.core.receiver import ReceiverClass
from zerotail.simulation import plan as plans
from zerotail.simulation.outside import Kind

Patch = tuple[Any, str, Any]
"""Where, which name, and what stands there instead."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One missing or wrong rule."""

    name: str
    what: str
    rules: tuple[str, ...]
    patches: Callable[[], list[Patch]]
    where: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    equivalent: str = ""

    def narrowed(self, drawn: plans.Plan) -> plans.Plan:
        """A plan in which the bug can show."""
        changes = dict(self.where)
        more, spacing = changes.pop("more_faults", ()), changes.pop("spacing", 37)
        lasting = changes.pop("lasting", 40)
        if more:
            step = drawn.seed % max(1, drawn.horizon - 60)
            extra = [
                plans.Fault(1 + (step + spacing * number) % drawn.horizon, kind, lasting, drawn.seed + number)
                for number, kind in enumerate(more)
            ]
            changes["faults"] = tuple(sorted((*drawn.faults, *extra), key=lambda fault: fault.step))
        return replace(drawn, **changes)


BUGS: dict[str, Bug] = {}


def bug(
    name: str,
    what: str,
    *rules: str,
    where: dict[str, Any] | None = None,
    seed: int = 0,
    equivalent: str = "",
) -> Callable[[Callable[[], list[Patch]]], Callable[[], list[Patch]]]:
    """Register what a function patches under a name."""

    def register(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        BUGS[name] = Bug(name, what, rules, patches, where or {}, seed, equivalent)
        return patches

    return register


@contextmanager
def planted(name: str | None) -> Iterator[Bug | None]:
    """Run with a bug; nothing of it is left afterwards."""
    if name is None:
        yield None
        return
    bug = BUGS[name]
    undo: list[Patch] = []
    try:
        for where, attribute, broken in bug.patches():
            undo.append((where, attribute, getattr(where, attribute)))
            setattr(where, attribute, broken)
        yield bug
    finally:
        for where, attribute, original in reversed(undo):
            setattr(where, attribute, original)


PLAIN: dict[str, Any] = {"given": False, "waiting": False, "careless": 0}
"""Clients without a vice: for bugs that are rare enough without them."""
R0_KAFKA = {"receiver": ReceiverClass.R0, "kind": Kind.KAFKA}
R1 = {"receiver": ReceiverClass.R1}
R2 = {"receiver": ReceiverClass.R2}
R3 = {"receiver": ReceiverClass.R3}
HOPS = {"two_stages": True}
INSIDE = {
    "clients": 2,
    "instructions": 16,
    "more_faults": (plans.LINK_ONE_WAY, plans.DB_FAILOVER) * 4,
    "spacing": 11,
}
SITE_CHANGES = {"more_faults": (plans.TAKEOVER, plans.REJOIN, plans.TAKEOVER, plans.REJOIN)}
BOTH_ALONE = {
    "receiver": ReceiverClass.R2,
    "errant": True,
    "more_faults": (plans.LINK_CUT, plans.EXPOSE, plans.TAKEOVER, plans.TAKEOVER_BOTH),
}
CUT_OFF = {"more_faults": (plans.LINK_CUT, plans.TAKEOVER, plans.LINK_CUT, plans.REJOIN)}
CUT_OFF_INSIDE = {
    "clients": 2,
    "instructions": 16,
    "more_faults": (plans.LINK_CUT, plans.DB_FAILOVER, plans.TAKEOVER_BOTH, plans.REJOIN) * 2,
    "spacing": 11,
    "lasting": 400,
}
