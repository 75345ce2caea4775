"""Bugs of the follower."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# ruff: noqa: ARG001
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from typing import Any

from zerotail import ports
from zerotail.failover import follow
from zerotail.simulation import parts
from zerotail.simulation import plan as plans
from zerotail.simulation.bugs.planting import PLAIN, Patch, bug
from zerotail.simulation.world import World


@bug("follower-ignores-the-order", "the standby's topic is filled producer by producer", "S13")
def _() -> list[Patch]:
    original = follow.records_behind

    def by_producer(journal: ports.JournalRead) -> ports.Batch:
        batch = original(journal)
        rows = sorted(
            zip(batch.producers, batch.serials, batch.epochs, batch.digests, batch.values, strict=True),
            key=lambda row: (-row[0], row[1]),
        )
        producers, serials, epochs, digests, values = zip(*rows, strict=True)
        return ports.Batch(producers, serials, epochs, digests, values, batch.mark)

    return [(follow, "records_behind", by_producer)]


@bug(
    "exposed-while-commits-wait",
    "an exposed epoch is opened while a commit that waits for the lost site holds the head",
    "L2",
    where=PLAIN | {"synchronous": True, "more_faults": (plans.SITE_DOWN, plans.EXPOSE, plans.EXPOSE), "spacing": 8},
    seed=436,
)
def _() -> list[Patch]:
    def nothing(self: World, actor: Any, effect: ports.StopWaiting) -> Any:
        return parts.DONE

    return [(World, "_stop_waiting", nothing)]
