"""Bugs of decisions about poison."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zerotail import ports
from zerotail.core import head
from zerotail.core.poison import Decision, Poison, Remedy
from zerotail.failover import replay
from zerotail.flow import apply, stage
from zerotail.handler import Given
from zerotail.simulation import plan as plans
from zerotail.simulation.bugs.planting import BUGS, PLAIN, Patch, bug
from zerotail.simulation.world import World

POISONED = {"poison": 2, "instructions": 16}


@bug(
    "poison-decision-by-name-only",
    "a decision is carried out on whatever record has the producer and serial that it names",
    "I22",
    where=POISONED
    | PLAIN
    | {
        "producers": 1,
        "partitions": 1,
        "clients": 3,
        "two_stages": False,
        "horizon": 900,
        "more_faults": (plans.LINK_ONE_WAY, plans.TAKEOVER, plans.REJOIN) * 5,
        "spacing": 60,
        "lasting": 200,
    },
    seed=419,
)
def _() -> list[Patch]:
    original_order, original_decide = apply.order_of, World.decide_poison

    def by_name(batch: Any, accepted: Any, decisions: Any) -> Any:
        order = original_order(batch, accepted, decisions)
        names = enumerate(zip(order.producers, order.serials, strict=True))
        return replace(order, decided=[(place, decisions[name]) for place, name in names if name in decisions])

    def decide(self: World, actor: Any, place: Any, seen: Poison, decision: Decision | None) -> Any:
        server = self.server(actor)
        known = server.table("poison").get((*place, seen.producer, seen.serial)) if server else None
        return original_decide(self, actor, place, known if isinstance(known, Poison) else seen, decision)

    return [(stage, "order_of", by_name), (World, "decide_poison", decide)]


@bug("poison-decision-not-journaled", "a decision is carried out and not stored in the segment", "S11", where=POISONED)
def _() -> list[Patch]:
    original = head.advance

    def advance(before: Any, **options: Any) -> Any:
        return original(before, **options | {"decided": ()})

    return [(head, "advance", advance)]


@bug(
    "poison-passed-over",
    "a record at which the handler fails is taken without the handler, and nobody is asked",
    "S11",
    "S17",
    where=POISONED,
)
def _() -> list[Patch]:
    original = stage._apply

    def go_on(of: Any, before: Any, order: Any, hint: Any, decided_at: int) -> ports.Story[Any]:
        applied, spoiled = yield from original(of, before, order, hint, decided_at)
        while spoiled is not None and not isinstance(applied, ports.End):
            place = 0 if applied is None else len(applied.segment.digests)
            passed = (place, Decision(Remedy.SKIP, order.digests[place]))
            order = replace(order, decided=[*order.decided, passed])
            applied, spoiled = yield from original(of, before, order, hint, decided_at)
        return applied, spoiled

    return [(stage, "_apply", go_on), *BUGS["poison-decision-not-journaled"].patches()]


@bug(
    "poison-decided-by-the-stage",
    "a stage that fails at a record decides by itself to skip it, and says so in the segment",
    "S17",
    where=POISONED,
)
def _() -> list[Patch]:
    return BUGS["poison-passed-over"].patches()[:1]


@bug("poison-leaves-traces", "what a failing record did to the state is stored", "S11", "S17", where=POISONED)
def _() -> list[Patch]:
    original = apply.apply_in_order
    left: dict[Any, dict[str, Any]] = {}

    def keep(handler: Any, records: Any, state: Any, keys: Any, at: int, chain: Any, of: Any) -> Any:
        try:
            said = original(handler, records, state, keys, at, chain, of)
        except apply.FailedError:
            left[id(handler), chain] = state._values
            raise
        state._values.update(left.pop((id(handler), chain), {}))
        return said

    return [(apply, "apply_in_order", keep)]


@bug(
    "poison-skipped-and-applied",
    "a record that is to be skipped is given to the handler after all, if that can take it by now",
    "S17",
    where=POISONED,
)
def _() -> list[Patch]:
    original = apply.open_order

    def hopeful(handler: Any, first: Any, order: Any) -> Any:
        replaced = [one for one in order.decided if one[1].remedy is Remedy.REPLACE]
        try:
            opened = original(handler, first, replace(order, decided=replaced))
            for record in opened.records:
                state = apply.State({})
                state.allow(handler.keys(record))
                handler.apply(record, state, Given(0, b"", record.position))
        except Exception:  # noqa: BLE001 - whatever a handler raises
            return original(handler, first, order)
        return replace(opened, order=order)

    return [(stage, "open_order", hopeful), (replay, "open_order", hopeful)]


@bug(
    "value-not-compared",
    "a value is applied under a digest that is another one's",
    "S11",
    where=POISONED | {"two_stages": False, "more_faults": (plans.KAFKA_SPOILS,) * 8},
)
def _() -> list[Patch]:
    return [(apply, "_require_own_values", lambda _order: None)]
