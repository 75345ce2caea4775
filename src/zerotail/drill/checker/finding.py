"""What a rule gives back: one broken statement with the events that prove it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from zerotail.drill.checker.facts import Facts
from zerotail.drill.history import AnyEvent


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence with facts, and the few events that make it true."""

    says: str
    witness: tuple[AnyEvent, ...]


Rule: TypeAlias = Callable[[Facts], Iterator[Finding]]
