"""Break a lab and heal it. Every fault answers with evidence that it bit, looked up in the world after the blow.

A fault that did not bite proves nothing, so `bit` is never assumed: processes are looked for again, ports are knocked
at, a question is sent through the link.
"""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Misused, Refused, Unfinished
from zerotail.lab.layout import ON_DEMAND, OUTSIDE, SITES, Layout, parts_of
from zerotail.lab.link import BOTH, CutMode, Done, LinkControl, WayStatus
from zerotail.lab.part import accepts_connections, kind_of, start_part, wait_until_ready
from zerotail.lab.process import Process, kill, processes_of, send
from zerotail.lab.site import is_prepared, prepare_part

_PATIENCE_SECONDS = 10.0
_START_SECONDS = 60.0
# An SSL request is the shortest question to PostgreSQL that gets an answer: one letter, from the first process on.
_POSTGRES_QUESTION = bytes([0, 0, 0, 8, 4, 210, 22, 47])


@dataclass(frozen=True, slots=True)
class FaultReport:
    """What was done, and how we know that it took effect."""

    fault: str
    target: str
    bit: bool
    evidence: tuple[str, ...]


def kill_target(layout: Layout, target: str) -> FaultReport:
    """Kill -9 every process of the target at once."""
    parts = parts_of(layout, target)
    hit = kill(layout.path, set(parts), Deadline.after(_PATIENCE_SECONDS))
    if not hit:
        return FaultReport("kill", target, bit=False, evidence=("nothing of it was running",))
    ports = [port for part in parts for port in layout.ports_of(part)]
    # A killed program's sockets close a moment after its pid is gone.
    wait_until(
        f"the ports of {target} are closed",
        lambda: not any(accepts_connections(port) for port in ports),
        Deadline.after(_PATIENCE_SECONDS),
        late=Unfinished,
    )
    evidence = (_counted(hit, "gone"), f"connections to ports {_listed(ports)} are refused")
    return FaultReport("kill", target, bit=True, evidence=evidence)


def fence_target(layout: Layout, target: str) -> FaultReport:
    """See to it that nothing of the target runs: the same blow as `kill`, content when there was nothing to hit."""
    killed = kill_target(layout, target)
    return FaultReport("fence", target, bit=True, evidence=killed.evidence)


def stop_target(layout: Layout, target: str) -> FaultReport:
    """SIGSTOP every process of the target: it keeps its connections and its ports, and is silent."""
    stopped = _signal_until(layout, target, signal.SIGSTOP, lambda process: process.state == "T")
    return FaultReport("stop", target, bool(stopped), (_counted(stopped, "in state T"),))


def continue_target(layout: Layout, target: str) -> FaultReport:
    """SIGCONT every process of the target."""
    running = _signal_until(layout, target, signal.SIGCONT, lambda process: process.state != "T")
    return FaultReport("continue", target, bool(running), (_counted(running, "running on"),))


def start_target(layout: Layout, target: str) -> FaultReport:
    """Start what of the target is not running; a Kafka node whose data was removed begins anew, empty."""
    deadline = Deadline.after(_START_SECONDS)
    running = {process.part for process in processes_of(layout.path)}
    missing = [part for part in parts_of(layout, target) if part not in running and _is_meant(layout, part, target)]
    for part in missing:
        _require_startable(layout, part)
    # All are started before the first is waited for: the nodes of a cluster need each other.
    for part in missing:
        if not is_prepared(layout, part):
            prepare_part(layout, part, deadline)
        start_part(layout, part)
        if kind_of(part) == "spark-master":
            # A worker that does not find its master at once is slow to try again.
            wait_until_ready(layout, part, deadline)
    for part in missing:
        wait_until_ready(layout, part, deadline)
    evidence = (f"{', '.join(missing)} ready",) if missing else ("everything of it was running",)
    return FaultReport("start", target, bool(missing), evidence)


def _is_meant(layout: Layout, part: str, target: str) -> bool:
    """`start outside` means the receiver; what is there on demand is started by its own name."""
    return part not in layout.on_demand or target not in (*SITES, OUTSIDE)


def _require_startable(layout: Layout, part: str) -> None:
    """A database that lost its data can come back as a copy only: that is `rejoin`, not `start`."""
    if not is_prepared(layout, part) and part.endswith(".postgres") and part not in ON_DEMAND:
        site = part.split(".", maxsplit=1)[0]
        raise Refused(
            f"{part} has no data any more.",
            code="ZT212",
            why="It can come back as a copy of the other site's database only.",
            tries=[f"zerotail lab rejoin {site} --dir {layout.folder}"],
        )


def destroy_site(layout: Layout, site: str) -> FaultReport:
    """Kill -9 everything of a site at once and remove its data."""
    if site not in SITES:
        raise Misused(
            f"only a site can be destroyed, not {site!r}.",
            code="ZT201",
            tries=[f"one of: {', '.join(SITES)}"],
        )
    killed = kill_target(layout, site)
    for part in parts_of(layout, site):
        shutil.rmtree(layout.folder_of(part) / "data", ignore_errors=True)
    left = [part for part in parts_of(layout, site) if (layout.folder_of(part) / "data").exists()]
    evidence = (
        *killed.evidence,
        f"data of {', '.join(left)} is still there" if left else "its data is removed",
    )
    return FaultReport("destroy", site, not left, evidence)


def cut_link(layout: Layout, direction: str, mode: CutMode) -> FaultReport:
    """Let nothing through the link, by silence or by resets."""
    done = LinkControl(layout.link_control_port).cut(direction, mode, deadline=Deadline.after(_PATIENCE_SECONDS))
    met = done.evidence
    answers = [answer for site in SITES if (answer := ask_through_link(layout, site)) is not None]
    evidence = (
        f"{met.connections_stalled} connections stalled, {met.connections_reset} reset",
        *(f"a question through the link: {answer}" for answer in answers),
        *_described(done),
    )
    bit = all(way.cut is mode for way in _ways(done, direction)) and "answered" not in answers
    return FaultReport(f"cut {mode.value}", direction, bit, evidence)


def heal_link(layout: Layout, direction: str) -> FaultReport:
    """Let everything through again."""
    done = LinkControl(layout.link_control_port).heal(direction, deadline=Deadline.after(_PATIENCE_SECONDS))
    answers = [answer for site in SITES if (answer := ask_through_link(layout, site)) is not None]
    evidence = (*(f"a question through the link: {answer}" for answer in answers), *_described(done))
    return FaultReport("heal", direction, all(way.cut is None for way in _ways(done, direction)), evidence)


def _ways(done: Done, direction: str) -> list[WayStatus]:
    return [way for way in done.status.ways if direction in (BOTH, way.direction)]


def _described(done: Done) -> tuple[str, ...]:
    return tuple(f"{way.direction}: {describe_way(way)}" for way in done.status.ways)


def trouble_link(layout: Layout, trouble: str, act: Callable[[LinkControl, Deadline], Done]) -> FaultReport:
    """Delay, throttle, hold or release; the evidence is the link's own state afterwards."""
    done = act(LinkControl(layout.link_control_port), Deadline.after(_PATIENCE_SECONDS))
    return FaultReport(trouble, "link", bit=True, evidence=_described(done))


def describe_way(way: WayStatus) -> str:
    """The faults that lie on one direction of the link, in words."""
    faults = [f"cut ({way.cut.value})"] if way.cut else []
    faults += [f"delayed by {way.latency_ms:g} ms"] if way.latency_ms else []
    faults += [f"held ({way.held_bytes} bytes)"] if way.hold_limit_bytes is not None else []
    faults += [f"throttled to {way.bytes_per_second} bytes/s"] if way.bytes_per_second else []
    return ", ".join(faults) or "open"


def ask_through_link(layout: Layout, site: str) -> str | None:
    """Whether the site's database answers through the link; None when it would not answer directly either."""
    place = layout.database(site)
    if _ask_postgres(place.port) != "answered":
        return None
    return _ask_postgres(place.link_port)


def _ask_postgres(port: int) -> str:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5) as connection:
            connection.sendall(_POSTGRES_QUESTION)
            return "answered" if connection.recv(1) else "closed"
    except TimeoutError:
        return "silence"
    except OSError:
        return "reset"


def _signal_until(
    layout: Layout, target: str, number: signal.Signals, took: Callable[[Process], bool]
) -> list[Process]:
    """Signal every process of the target until all show it; answers them."""
    parts = set(parts_of(layout, target))

    def all_took() -> list[Process] | None:
        mine = [process for process in processes_of(layout.path) if process.part in parts]
        waiting = [process for process in mine if not took(process)]
        for process in waiting:
            send(process, number)
        return None if waiting else mine or [Process(0, 0, target, "")]

    deadline = Deadline.after(_PATIENCE_SECONDS)
    done = wait_until(f"{target} obeys {number.name}", all_took, deadline, late=Unfinished)
    return [process for process in done if process.pid]


def _counted(processes: list[Process], what: str) -> str:
    noun = "process is" if len(processes) == 1 else "processes are"
    return f"{len(processes)} {noun} {what} (pids {_listed([process.pid for process in processes])})"


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(str(number) for number in sorted(numbers)[:8])
    return f"{shown}, …" if len(numbers) > 8 else shown or "none"
