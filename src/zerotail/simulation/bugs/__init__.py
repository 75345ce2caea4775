"""Named bugs: what the protocol would do without one of its rules, and which rule of the verdict says so.

A bug is planted from outside, by replacing a decision of the protocol, or a check of the schema, for the
length of a run; the code that is shipped has no switches. A simulation that does not find these proves
nothing, so each of them is looked for in every test run.

`rules` are the verdicts that may name it: a missing rule shows in more than one way. `where` narrows the
plans to those in which the bug can show at all (a bug of R3 needs an R3 receiver); `seed` is only where the
search begins. An `equivalent` bug breaks nothing, because another rule stands behind the one that is
missing; it says which.
"""

from __future__ import annotations

from zerotail.simulation.bugs import (  # noqa: F401 - each registers its bugs
    doors,
    emissions,
    epochs,
    followers,
    gates,
    journals,
    lives,
    poisons,
    producers,
    silent_receivers,
)
from zerotail.simulation.bugs.planting import BUGS, planted

__all__ = ["BUGS", "planted"]
