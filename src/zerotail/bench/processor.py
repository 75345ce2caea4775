"""Processor time of a process and of everything that it has started."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """What the process and its descendants have used so far, with those that have ended and were waited for."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                stat = (entry / "stat").read_bytes()
                fields = stat[stat.rindex(b")") + 2 :].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
                used[int(entry.name)] = sum(map(int, fields[11:15])) / _TICKS
    total, left = 0.0, [root]
    while left:
        pid = left.pop()
        total += used.get(pid, 0.0)
        left += children.get(pid, [])
    return total
