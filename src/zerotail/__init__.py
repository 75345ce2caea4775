"""Two sites, each with Kafka and PostgreSQL: when one is lost, the other goes on at the break point.

What a handler is written with is here: `from zerotail import Emission, Given, Record, State`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zerotail.handler import Emission, Given, Record, State

__version__ = "0.1.0"
__all__ = ["Emission", "Given", "Record", "State"]


def __getattr__(name: str) -> Any:
    # Looked up when it is asked for: `zerotail --help` must not import what handlers need.
    if name in __all__:
        from zerotail import handler

        return getattr(handler, name)
    raise AttributeError(f"module 'zerotail' has no attribute {name!r}")
