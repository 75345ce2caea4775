"""Getting the order back: a topic in any state, and consumers that see the journal's order.

place      one partition of a topic at one site, and what the database recorded about it
observe    the state of the log, from a few looks
plan       every strategy predicted, one chosen
refill     write in order from the database
reading    a disordered partition as a sequence in order, proven segment by segment
rebuild    replay through the handler, state compared
run        one restore, carried out
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zerotail.restore.place import Place
    from zerotail.restore.plan import Wish
    from zerotail.restore.reading import InOrder, open_in_order
    from zerotail.restore.run import run_restore
    from zerotail.restore.seen import Seen, plan_restore

__all__ = ["InOrder", "Place", "Seen", "Wish", "open_in_order", "plan_restore", "run_restore"]
_HOMES = {
    "Place": "place",
    "Wish": "plan",
    **dict.fromkeys(("InOrder", "open_in_order"), "reading"),
    "run_restore": "run",
    **dict.fromkeys(("Seen", "plan_restore"), "seen"),
}


def __getattr__(name: str) -> Any:
    # Looked up when it is asked for: whoever only names an answer's form must not import Kafka and Arrow.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
