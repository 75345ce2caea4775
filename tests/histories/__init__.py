"""Clean histories from a seed: a small world that keeps every rule, with all that may rightly happen in one.

The world has a log of commits (rows, segments, epochs) at the active site, of which the other site has
flushed a prefix. A takeover keeps the prefix and forgets the rest; whatever left the system was released
behind it. So the histories hold unknown outcomes, retries, repeats, refused zombies, exposed periods, doubts,
divergent tails, handovers, skipped records and a second stage, and still break no rule. `clean(seed)` also
says what may be expected of the run, so that its verdict is *passed* and nothing less.
"""

from __future__ import annotations

from histories.world import World
from zerotail.drill.checker import Expect
from zerotail.drill.history import AnyEvent

__all__ = ["World", "clean"]


def clean(seed: int) -> tuple[list[AnyEvent], Expect]:
    """The events of a run that keeps every rule, and what may be expected of it."""
    world = World(seed)
    world.run()
    return world.events, world.expectation()
