"""The faults: what is done to the cluster, and the evidence that it took effect.

The leader of every partition is broker 1, its followers are 2 and 3. A fault gets the cluster while it is whole and
under load. It strikes, waits until the cluster has answered as far as it can, and brings back what it took away; the
caller waits until the cluster is whole again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from zerotail.drill.durability.cells import Cell
from zerotail.drill.durability.stage import Stage
from zerotail.lab.cluster import BROKERS, SESSION_SECONDS
from zerotail.lab.power import Cut

LEADER, FOLLOWERS = BROKERS[0], BROKERS[1:]
_BEHIND_SECONDS = 0.5
_ALONE_SECONDS = 0.5
_AFTERWARDS_SECONDS = 0.5

Told = tuple[str, ...]
"""Evidence; empty when the fault did not bite."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of disaster, and what it must not take."""

    name: str
    summary: str
    play: Callable[[Stage], Told]
    promises: Callable[[Cell], bool]
    """Of which cells nothing may be lost."""
    shows: Callable[[Cell], bool]
    """Cells one of which must have lost something, or the fault was too weak to show anything."""
    rounds: int
    kills_leader: bool = True
    cuts_power: bool = False
    """What was not flushed is cut off; nothing is ever cut from a topic that flushes every record."""


def _leader_killed(stage: Stage) -> Told:
    gone = stage.cluster.kill([LEADER])
    stage.cluster.start([LEADER])
    moved = stage.wait_until_leaders_are(FOLLOWERS)
    return _if(gone, f"process {_list(gone)} is gone", moved)


def _leader_killed_followers_behind(stage: Stage) -> Told:
    frozen = stage.cluster.freeze(FOLLOWERS)
    time.sleep(_BEHIND_SECONDS)
    gone = stage.cluster.kill([LEADER])
    stage.cluster.thaw(FOLLOWERS)
    stage.cluster.start([LEADER])
    moved = stage.wait_until_leaders_are(FOLLOWERS)
    behind = f"followers (processes {_list(frozen)}) stood still for {_BEHIND_SECONDS} s, still in sync"
    return _if(gone and frozen, behind, f"process {_list(gone)} is gone", moved)


def _leader_killed_alone(stage: Stage) -> Told:
    frozen = stage.cluster.freeze(FOLLOWERS)
    shrunk = stage.wait_until_in_sync_are([LEADER], led_by=LEADER)
    time.sleep(_ALONE_SECONDS)
    gone = stage.cluster.kill([LEADER])
    stage.cluster.thaw(FOLLOWERS)
    answered = stage.wait_until_unclean_leaders_are(FOLLOWERS)
    stage.cluster.start([LEADER])
    return _if(gone and frozen, shrunk, f"process {_list(gone)} is gone, the followers run again", answered)


def _both_in_sync_killed(stage: Stage) -> Told:
    partner, third = FOLLOWERS
    frozen = stage.cluster.freeze([third])
    shrunk = stage.wait_until_in_sync_are([LEADER, partner], led_by=LEADER)
    time.sleep(_ALONE_SECONDS)
    gone = stage.cluster.kill([LEADER, partner])
    stage.cluster.thaw([third])
    answered = stage.wait_until_unclean_leaders_are([third])
    stage.cluster.start([LEADER, partner])
    return _if(gone and frozen, shrunk, f"processes {_list(gone)} are gone, the third runs again", answered)


def _leader_frozen(stage: Stage) -> Told:
    frozen = stage.cluster.freeze([LEADER])
    moved = stage.wait_until_leaders_are(FOLLOWERS)
    time.sleep(_AFTERWARDS_SECONDS)
    stage.cluster.thaw([LEADER])
    return _if(frozen, f"process {_list(frozen)} stood still", moved, "it went on, not knowing that it was deposed")


def _all_killed(stage: Stage) -> Told:
    gone = stage.cluster.kill(BROKERS)
    answered = _start_leader_last(stage)
    return _if(len(gone) == len(BROKERS), f"processes {_list(gone)} are gone", answered)


def _start_leader_last(stage: Stage) -> str:
    """The order that asks the most: whoever may be led by anybody is led by a follower when the leader comes."""
    stage.cluster.start(FOLLOWERS)
    answered = stage.wait_until_unclean_leaders_are(FOLLOWERS)
    stage.cluster.start([LEADER])
    return answered


def _leader_loses_power(stage: Stage) -> Told:
    gone = stage.cluster.kill([LEADER])
    cut = stage.cut_power([LEADER])
    stage.cluster.start([LEADER])
    moved = stage.wait_until_leaders_are(FOLLOWERS)
    return _if(gone and cut.records, f"process {_list(gone)} is gone", _cut(cut), moved)


def _all_lose_power(stage: Stage) -> Told:
    gone = stage.cluster.kill(BROKERS)
    cut = stage.cut_power(BROKERS)
    answered = _start_leader_last(stage)
    return _if(len(gone) == len(BROKERS) and cut.records, f"processes {_list(gone)} are gone", _cut(cut), answered)


def _if(happened: object, *told: str) -> Told:
    return told if happened else ()


def _list(pids: tuple[int, ...]) -> str:
    return ", ".join(map(str, pids))


def _cut(cut: Cut) -> str:
    return f"{cut.records:,} records that were not flushed ({cut.bytes:,} bytes, {cut.partitions} logs) are cut off"


FAULTS = (
    Fault(
        "leader-killed",
        "kill -9 of the leader under load",
        _leader_killed,
        promises=lambda cell: cell.promises_leaders,
        shows=lambda cell: cell.acks == "0",
        rounds=20,
    ),
    Fault(
        "leader-killed-followers-behind",
        f"the followers stand still for {_BEHIND_SECONDS} s, as in a long collection of garbage; kill -9 of the leader",
        _leader_killed_followers_behind,
        promises=lambda cell: cell.promises_leaders,
        shows=lambda cell: cell.acks == "1",
        rounds=20,
    ),
    Fault(
        "leader-killed-alone",
        "the followers are silent until the leader alone is in sync; kill -9 of the leader; they come back first",
        _leader_killed_alone,
        promises=lambda cell: cell.promises_leaders,
        shows=lambda cell: cell.acks == "all" and cell.min_insync == 1 and cell.unclean,
        rounds=3,
    ),
    Fault(
        "both-in-sync-killed",
        "one follower is silent until it is out of sync; kill -9 of both others; it comes back first",
        _both_in_sync_killed,
        promises=lambda cell: cell.promises_processes,
        shows=lambda cell: cell.promises_leaders and cell.unclean,
        rounds=3,
    ),
    Fault(
        "leader-frozen",
        f"SIGSTOP of the leader past its session of {SESSION_SECONDS:.0f} s, then SIGCONT",
        _leader_frozen,
        promises=lambda cell: cell.promises_leaders,
        shows=lambda cell: cell.acks == "1",
        rounds=3,
        kills_leader=False,
    ),
    Fault(
        "all-killed",
        "kill -9 of all three at once; the leader comes back last",
        _all_killed,
        promises=lambda cell: cell.promises_processes,
        shows=lambda cell: cell.acks == "0",
        rounds=4,
    ),
    Fault(
        "leader-loses-power",
        "kill -9 of the leader, and what it had not flushed is cut off",
        _leader_loses_power,
        promises=lambda cell: cell.promises_leaders,
        shows=lambda cell: cell.acks == "0",
        rounds=4,
        cuts_power=True,
    ),
    Fault(
        "all-lose-power",
        "kill -9 of all three at once, and what each had not flushed is cut off; the leader comes back last",
        _all_lose_power,
        promises=lambda cell: cell.flushed,
        shows=lambda cell: cell.promises_processes and not cell.flushed,
        rounds=2,
        cuts_power=True,
    ),
)
