"""Processes of a lab: started in a group of their own, found again by any later command, never mistaken for others.

Nothing about a running server is kept in a file. Each is started with two variables in its environment, the lab's
folder and the part's name, and these are looked up under `/proc` whenever somebody asks: what a killed `lab up` had
just started is found like everything else. PostgreSQL's children overwrite their environment with their title; they
are known by their program and by the data folder in which they stand.

A process is its pid *and* its start time, and signals go through a pidfd after comparing both: a pid that the kernel
has given to somebody else in the meantime is never hit. A process that has ended but was not yet collected by its
parent (state Z) counts as gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unfinished

LAB_VARIABLE = "ZEROTAIL_LAB_FOLDER"
PART_VARIABLE = "ZEROTAIL_LAB_PART"


@dataclass(frozen=True, slots=True)
class Process:
    """One running process of a part."""

    pid: int
    started: int
    """Its start time in kernel ticks since boot."""
    part: str
    state: str
    """The kernel's letter: R running, S sleeping, T stopped, …"""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start one server."""

    part: str
    arguments: Sequence[str | Path]
    folder: Path
    """Its working folder; `log` inside it gets what the server prints."""


def start(lab: Path, command: Command, environment: Mapping[str, str] | None = None) -> int:
    """Start a server in a session of its own, detached from the terminal; its output goes to `log` in its folder."""
    with (command.folder / "log").open("ab") as log:
        child = subprocess.Popen(
            [str(argument) for argument in command.arguments],
            cwd=command.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=marked_environment(lab, command.part, environment),
        )
    # Not waited for: the server outlives us. Python must not warn about that when the object goes.
    child.returncode = 0
    return child.pid


def marked_environment(lab: Path, part: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment with the two variables by which the lab finds its processes."""
    return {**os.environ, **(more or {}), LAB_VARIABLE: str(lab), PART_VARIABLE: part}


def processes_of(lab: Path) -> list[Process]:
    """Every live process of the lab in this folder."""
    _collect_ended_children()
    return [process for pid in _all_pids() if pid != os.getpid() and (process := _find_process(pid, lab))]


def session_members(leader: int) -> list[int]:
    """The live processes of a session, whatever process groups they made for themselves."""
    members = []
    for pid in _all_pids():
        with suppress(OSError):
            fields = _stat_fields(pid)
            if int(fields[3]) == leader and fields[0] not in "ZX":
                members.append(pid)
    return members


def _all_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _find_process(pid: int, lab: Path) -> Process | None:
    """The process, when it is alive and belongs to the lab."""
    try:
        fields = _stat_fields(pid)
        state, started = fields[0], int(fields[19])
        part = None if state in "ZX" else _part_by_environment(pid, lab) or _part_by_data_folder(pid, lab)
    except (OSError, ValueError):  # it ended while we looked, or is not ours to look at
        return None
    return Process(pid, started, part, state) if part else None


def _stat_fields(pid: int) -> list[str]:
    """What the kernel says of a process, from the field behind its name on; the name may be any bytes at all."""
    stat = Path(f"/proc/{pid}/stat").read_bytes()
    return stat[stat.rindex(b")") + 2 :].decode().split()


def _part_by_environment(pid: int, lab: Path) -> str | None:
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    if os.fsencode(f"{LAB_VARIABLE}={lab}") not in variables:
        return None
    prefix = f"{PART_VARIABLE}=".encode()
    return next((entry[len(prefix) :].decode() for entry in variables if entry.startswith(prefix)), None)


def _part_by_data_folder(pid: int, lab: Path) -> str | None:
    """`SITE.postgres` for a PostgreSQL process that stands in `LAB/SITE/postgres/data`."""
    if Path(os.readlink(f"/proc/{pid}/exe")).name.split()[0] != "postgres":
        return None
    where = Path(os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)"))
    if where.name == "data" and where.parent.name == "postgres" and where.parent.parent.parent == lab:
        return f"{where.parent.parent.name}.postgres"
    return None


def _collect_ended_children() -> None:
    """Collect servers that ended and that this very process had started: else they stay as state Z."""
    for pid in _all_pids():
        with suppress(OSError):
            fields = _stat_fields(pid)
            if fields[0] == "Z" and int(fields[1]) == os.getpid() and _was_session_leader(pid, fields):
                os.waitpid(pid, os.WNOHANG)


def _was_session_leader(pid: int, fields: Sequence[str]) -> bool:
    """Servers are leaders of their sessions; other children (of a test runner, say) are not ours to collect."""
    return int(fields[3]) == pid


def send(process: Process, number: signal.Signals) -> bool:
    """Send a signal to exactly this process; False when it is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if int(_stat_fields(process.pid)[19]) != process.started:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)


def kill(lab: Path, parts: set[str], deadline: Deadline) -> list[Process]:
    """Kill -9 everything of these parts; answers what was hit, and returns when it is gone.

    Repeats until nothing is left: a server may have started a child between our look and our blow.
    """
    hit: dict[int, Process] = {}

    def nothing_left() -> bool:
        alive = [process for process in processes_of(lab) if process.part in parts]
        for process in alive:
            hit[process.pid] = process
            send(process, signal.SIGKILL)
        return not alive

    what = f"every process of {', '.join(sorted(parts))} is gone"
    wait_until(what, nothing_left, deadline, every_seconds=0.01, late=Unfinished)
    return list(hit.values())
