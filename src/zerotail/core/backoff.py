"""How long to wait before something is tried again that was refused, or that nobody answered (E19)."""

from __future__ import annotations

FIRST_SECONDS = 0.02
LONGEST_SECONDS = 5.0
_DOUBLINGS = 20


def pause_before(attempt: int, chance: float) -> float:
    """Seconds before the attempt with this number, counted from 1 since something last went well.

    They double up to the longest. `chance`, from 0 to 1, takes up to half of them away: who was refused together does
    not come back together.
    """
    seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(attempt - 1, _DOUBLINGS))
    return seconds * (1.0 - 0.5 * chance)
