"""Processor time of a process, and of everything that it has started."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def own_cpu_seconds(process: int) -> float:
    """What the process has used so far, with children that have ended and were waited for; 0 when it is gone."""
    with suppress(OSError):
        return _read(process)[1]
    return 0.0


def cpu_seconds(root: int) -> float:
    """What the process and its descendants have used so far, with those that have ended and were waited for."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                process = int(entry.name)
                parent, used[process] = _read(process)
                children.setdefault(parent, []).append(process)
    total, left = 0.0, [root]
    while left:
        pid = left.pop()
        total += used.get(pid, 0.0)
        left += children.get(pid, [])
    return total


def _read(process: int) -> tuple[int, float]:
    """Its parent, and its seconds."""
    stat = Path(f"/proc/{process}/stat").read_bytes()
    fields = stat[stat.rindex(b")") + 2 :].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / _TICKS
