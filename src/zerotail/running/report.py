"""What a process says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Tell = Callable[[str], None]
"""One line for whoever started the process."""


class Report(Protocol):
    """Where a process says what it does: `working`, `waiting` or `stopped`, and why."""

    def __call__(self, role: str, name: str, partition: int, doing: str, reason: str = "", **counters: int) -> None: ...


def unheard(role: str, name: str, partition: int, doing: str, reason: str = "", **counters: int) -> None:
    """A report that nobody reads."""
