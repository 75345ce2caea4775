"""The operating system's network settings that matter to a mirror between sites: read and judged, never written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zerotail.mirror.advice import Advice

_MEGABYTE = 1_048_576
_BUFFERS = {
    "net.core.rmem_default": _MEGABYTE,
    "net.core.rmem_max": 16 * _MEGABYTE,
    "net.core.wmem_default": _MEGABYTE,
    "net.core.wmem_max": 16 * _MEGABYTE,
    "net.core.optmem_max": 65_536,
}
_SWITCHES = {"net.ipv4.tcp_window_scaling": 1, "net.ipv4.tcp_slow_start_after_idle": 0}


@dataclass(frozen=True, slots=True)
class NetworkSetting:
    """One setting of the kernel; None when it cannot be read here."""

    name: str
    value: int | None
    wanted: int
    is_right: bool


def observe_network(root: Path = Path("/proc/sys")) -> tuple[NetworkSetting, ...]:
    """The settings as they are now."""
    found = []
    for name, wanted in (_BUFFERS | _SWITCHES).items():
        value = _read(root / name.replace(".", "/"))
        right = value is not None and (value == wanted if name in _SWITCHES else value >= wanted)
        found.append(NetworkSetting(name, value, wanted, right))
    return tuple(found)


def network_advice(settings: tuple[NetworkSetting, ...]) -> tuple[Advice, ...]:
    """What to set otherwise, each with the line to type."""
    return tuple(
        Advice(one.name, str(one.value), str(one.wanted), f"sysctl -w {one.name}={one.wanted}")
        for one in settings
        if not one.is_right and one.value is not None
    )


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
