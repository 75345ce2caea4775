"""By how much this process grew, as the operating system saw it and not as we counted."""

from __future__ import annotations

import resource
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


class PeakMemory:
    """The most resident memory since it was made, beyond what there was then."""

    def __init__(self) -> None:
        self._measured = _reset()
        self._before = _read("VmRSS") if self._measured else _largest()

    @property
    def grown_bytes(self) -> int:
        """So far; where the system cannot start anew, only what lies above the process's earlier peak."""
        return max(0, (_read("VmHWM") if self._measured else _largest()) - self._before)


def _reset() -> bool:
    try:
        _CLEAR.write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


def _read(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def _largest() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
