"""Blows to a mirror and to what it stands on, each with evidence that it fell, looked up in the world.

A blow **fell** when what was struck is gone: its process, its connections. It **was survived** when something new
stands in its place: a process or connections that were not there before. Which comes when is a shuffle, so that every
kind has its turn.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.mirrors import RunningMirror
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout, parts_of
from zerotail.lab.link import CutMode, LinkControl
from zerotail.lab.process import processes_of

KINDS = ("worker", "jvm", "driver", "east.kafka", "west.kafka", "link")
ENDS_THE_MIRROR = ("jvm", "driver")
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Blow:
    """One blow that was dealt."""

    kind: str
    fell: bool
    survived: Callable[[RunningMirror], bool]
    """Whether something new stands in the place of what was struck."""


def order_of_blows(count: int, seed: int) -> list[str]:
    """So many kinds of blows, in rounds: each round is a shuffle of all kinds."""
    chance = random.Random(seed)
    order: list[str] = []
    while len(order) < count:
        order += chance.sample(KINDS, len(KINDS))
    return order[:count]


def deal(layout: Layout, mirror: RunningMirror, kind: str) -> Blow:
    """One blow; brokers and link come back at once."""
    if kind == "link":
        return _cut_link(layout)
    if kind.endswith("kafka"):
        return _kill_broker(layout, kind)
    before = mirror.find(kind)
    pid = mirror.kill(kind)
    wait_until(f"the {kind} is gone", lambda: _is_gone(pid), Deadline.after(_PATIENCE_SECONDS))
    return Blow(kind, pid not in mirror.find(kind), lambda now: bool(now.find(kind) - before - {pid}))


def _kill_broker(layout: Layout, target: str) -> Blow:
    def pids() -> set[int]:
        return {one.pid for one in processes_of(layout.path) if one.part in parts_of(layout, target)}

    before = pids()
    killed = kill_target(layout, target)
    fell = killed.bit and bool(before) and not before & pids()
    start_target(layout, target)
    return Blow(target, fell, lambda _: bool(pids() - before))


def _cut_link(layout: Layout) -> Blow:
    control = LinkControl(layout.link_control_port)
    ways_in = {place.link_port for place in layout.brokers}

    def connections() -> tuple[int, int]:
        """To brokers through the link: how many are open, and how many there were in all."""
        status = control.status(deadline=Deadline.after(10))
        ways = [one for one in status.forwards if one.listen_port in ways_in]
        return sum(one.connections_open for one in ways), sum(one.connections_total for one in ways)

    patience = Deadline.after(_PATIENCE_SECONDS)
    wait_until("the mirror is connected through the link", lambda: connections()[0], patience)
    done = control.cut(mode=CutMode.RESET, deadline=Deadline.after(10))
    open_now, before = connections()
    control.heal(deadline=Deadline.after(10))
    fell = done.evidence.connections_reset > 0 and open_now == 0
    return Blow("link", fell, lambda _: connections()[1] > before)


def _is_gone(pid: int) -> bool:
    """Whether no such process runs; one that has ended and was not collected yet counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b") ", 1)[1].startswith(b"Z")
    except OSError:
        return True
