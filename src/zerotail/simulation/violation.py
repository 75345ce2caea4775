"""What a judge says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold, and what shows it."""

    rule: str
    text: str
