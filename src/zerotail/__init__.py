"""Two sites, each with Kafka and PostgreSQL: when one is lost, the other goes on at the break point.

What a handler is written with is here: `from zerotail import Emission, Given, Record, State`. So is how a business
submits an instruction and learns that it is accepted: `submit`, and `Submitter` for more than one; and `Spool`, a
durable local queue in front of that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zerotail.handler import Emission, Given, Record, State
    from zerotail.spool import Spool
    from zerotail.submission import Submitter, submit

__version__ = "0.1.0"
__all__ = ["Emission", "Given", "Record", "Spool", "State", "Submitter", "submit"]
_HOMES = {
    **dict.fromkeys(("Emission", "Given", "Record", "State"), "zerotail.handler"),
    "Spool": "zerotail.spool",
    **dict.fromkeys(("Submitter", "submit"), "zerotail.submission"),
}


def __getattr__(name: str) -> Any:
    # Looked up when it is asked for: `zerotail --help` must not import what handlers need.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'zerotail' has no attribute {name!r}")
