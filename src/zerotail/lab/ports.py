"""Ports for servers: free now, below the range the kernel hands out by itself, and never promised to two labs.

A server binds its port seconds after the port was chosen. Between the two another lab might choose the same one, so
choices are written into a registry of this user's, under a lock; an entry ends when its lab's folder is taken down.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from zerotail.errors import Refused

FIRST_PORT = 10240
NEXT_PORT = 32768  # from here on the kernel gives ports to outgoing connections


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def count_free_ports(enough: int) -> int:
    """How many ports are free, counted up to `enough`."""
    found = 0
    for port in range(FIRST_PORT, NEXT_PORT):
        if found == enough:
            break
        found += port_is_free(port)
    return found


def reserve_ports(count: int, owner: Path) -> list[int]:
    """`count` free ports, promised to the lab in folder `owner` until `release_ports`."""
    with _registry() as promised:
        taken = {port for folder, ports in promised.items() if Path(folder).is_dir() for port in ports}
        start = random.SystemRandom().randrange(FIRST_PORT, NEXT_PORT)
        chosen: list[int] = []
        for step in range(NEXT_PORT - FIRST_PORT):
            port = FIRST_PORT + (start - FIRST_PORT + step) % (NEXT_PORT - FIRST_PORT)
            if port not in taken and port_is_free(port):
                chosen.append(port)
            if len(chosen) == count:
                break
        else:
            raise Refused(
                f"only {len(chosen)} of {count} ports are free between {FIRST_PORT} and {NEXT_PORT - 1}.",
                code="ZT205",
                tries=[
                    "ss -ltn    # who listens?",
                    "zerotail lab down --dir …    # for labs no longer needed",
                ],
            )
        promised[str(owner)] = sorted({*promised.get(str(owner), []), *chosen})
        return chosen


def release_ports(owner: Path) -> None:
    """Give back what was promised to `owner`."""
    with _registry() as promised:
        promised.pop(str(owner), None)


@contextmanager
def _registry() -> Iterator[dict[str, list[int]]]:
    """The promises of this user's labs, locked; written back when the block ends well, without labs that are gone."""
    folder = Path(tempfile.gettempdir()) / f"zerotail-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "ports.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        promised: dict[str, list[int]] = {}
        with suppress(json.JSONDecodeError):  # half-written by a killed command: the promises in it are void
            promised = json.load(file)
        yield promised
        file.seek(0)
        file.truncate()
        json.dump({lab: ports for lab, ports in promised.items() if Path(lab).is_dir()}, file)
