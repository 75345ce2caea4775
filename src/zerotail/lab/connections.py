"""Who is connected to a server: the kernel's list of connections, by process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

_ESTABLISHED = "01"


def connections_to(port: int, pids: Iterable[int]) -> dict[int, set[int]]:
    """Of these processes, those with connections to this port of this machine: the ports at their own side."""
    known, found = _sockets_to(port), dict[int, set[int]]()
    for pid in pids:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    own = known.get(os.readlink(descriptor))
                    if own is not None:
                        found.setdefault(pid, set()).add(own)
    return found


def have_given_up(before: Mapping[int, set[int]], now: Mapping[int, set[int]]) -> set[int]:
    """The processes that have let go a connection that they had: asking on another one is no notice yet."""
    return {pid for pid, ports in before.items() if not ports <= now.get(pid, set())}


def _sockets_to(port: int) -> dict[str, int]:
    """Our ends of the connections to this port: by the link that a descriptor shows, the port at our side."""
    found = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *rest = line.split()
        if int(remote.split(":")[1], 16) == port and state == _ESTABLISHED:
            found[f"socket:[{rest[5]}]"] = int(local.split(":")[1], 16)
    return found
