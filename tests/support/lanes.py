"""Two lanes side by side: in one the tests that start servers, module by module, in the other all that start none.

Tests with servers wait for half of their time, those without only compute; two workers for the first and one for the
others keep two cores busy. Each has servers of its own. A worker that has nothing left in its own lane helps in the
other one, from its far end. What takes longest goes first, by the seconds that a run was seen to take
(`tests/durations.json`; `ZT_TEST_DURATIONS=1` writes it anew), so that the lanes end together.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

SERVERS = "tests/integration/"
SHARED = ("tests/integration/running/faults",)
"""Folders whose tests share a running system: one unit of work."""
QUICK_WORKER = "gw0"
ROOT = Path(__file__).parents[2]
DURATIONS = ROOT / "tests" / "durations.json"


def module_of(nodeid: str) -> str:
    """The module of a test."""
    return nodeid.partition("::")[0]


def unit_of(nodeid: str) -> str:
    """What is given to a worker at once: a module where tests share servers, else each test by itself."""
    for folder in SHARED:
        if nodeid.startswith(folder):
            return folder
    return module_of(nodeid) if nodeid.startswith(SERVERS) else nodeid


class Lanes(LoadScopeScheduling):  # type: ignore[misc]
    """Gives the first worker what needs no servers, the others what needs them."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(self._next_for(node), last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """The test at which a worker died, if it did: it counts as run, and the rest of its work goes to the others.

        xdist would give it out again with that rest, until so many workers are dead that the run ends.
        """
        left = {name: tests for name, tests in self.assigned_work.pop(node).items() if not all(tests.values())}
        died_at = next((nodeid for tests in left.values() for nodeid, is_done in tests.items() if not is_done), None)
        if died_at is not None:
            left[self._split_scope(died_at)][died_at] = True
        self.workqueue.update({name: tests for name, tests in left.items() if not all(tests.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return died_at

    def _next_for(self, node: WorkerController) -> str:
        has_servers = node.gateway.id != QUICK_WORKER
        own = [unit for unit in self.workqueue if unit.startswith(SERVERS) == has_servers]
        chosen: str = max(own, key=seconds_of) if own else min(self.workqueue, key=seconds_of)
        return chosen


def seconds_of(unit: str) -> float:
    """How long a module took when that was last written down; what is new may be long."""
    module = module_of(unit)
    if unit in SHARED:
        return sum(took for known, took in known_seconds().items() if known.startswith(unit))
    return known_seconds().get(module, math.inf)


@cache
def known_seconds() -> dict[str, float]:
    """Seconds by module."""
    seconds: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    return seconds


def write_seconds(durations: Iterable[tuple[str, float]]) -> None:
    """Write down what tests took, by module; modules that were not run keep what they had."""
    fresh: dict[str, float] = defaultdict(float)
    for nodeid, seconds in durations:
        fresh[module_of(nodeid)] += seconds
    kept = {module: took for module, took in known_seconds().items() if (ROOT / module).exists()}
    rounded = {module: round(took, 1) for module, took in sorted((kept | fresh).items())}
    DURATIONS.write_text(json.dumps(rounded, indent=0) + "\n")
