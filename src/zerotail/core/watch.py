"""When a watcher takes over: the other site has given no sign of life for so long, without a break.

Every sign starts the silence anew. A look that could not be made (the own database did not answer) says nothing about
the other site, and starts it anew as well: who is cut off from everything must not conclude that the rest is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Sign(Enum):
    """What one look at the other site showed."""

    ALIVE = "alive"
    SILENT = "silent"
    UNKNOWN = "unknown"
    """The looker itself was not well."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How long the other site has been silent; times are seconds on one clock that never goes back."""

    after_seconds: float
    silent_since: float | None = None

    def seen(self, sign: Sign, at: float) -> Watch:
        """The watch behind one more look."""
        if sign is not Sign.SILENT:
            return replace(self, silent_since=None)
        return self if self.silent_since is not None else replace(self, silent_since=at)

    def silent_seconds(self, at: float) -> float:
        """How long it has been silent."""
        return 0.0 if self.silent_since is None else at - self.silent_since

    def is_due(self, at: float) -> bool:
        """Whether it has been silent for long enough."""
        return self.silent_since is not None and self.silent_seconds(at) >= self.after_seconds
