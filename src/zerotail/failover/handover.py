"""Handover: the active site gives its role to the other one, on a quiet day and with nothing in doubt.

1. observe: `source` is active, live and gated; `target` is its standby. No doubt is open.
2. Shut the way in, for submissions and for SQL: the epoch drains for as long as this act lives.
3. Wait until every instruction is applied and every emission acknowledged.
4. Shut the source's database down cleanly: the standby then holds its last checkpoint.
5. The target must hold everything up to that checkpoint; then it takes over as in a disaster (`takeover.py`), with an
   empty tail.
6. The source comes back as standby (`rejoin.py`).

Killed anywhere: before 4 the source goes on by itself, after 4 a takeover at either site finishes
it.
"""

from __future__ import annotations

from typing import NoReturn

from zerotail.core.epoch import Durability, Phase
from zerotail.core.identity import Epoch, SiteName
from zerotail.errors import Refused as NotAllowed
from zerotail.errors import Unavailable, Unfinished
from zerotail.failover.rejoin import follows
from zerotail.failover.takeover import Pipeline, TakeoverReport, take_over
from zerotail.ports import (
    ChangeEpoch,
    Done,
    Drained,
    ObserveDrained,
    ObserveSite,
    Pause,
    Refused,
    ShutDown,
    SiteObserved,
    Story,
)

LOOKS = 300
_SILENT_LOOKS = 10
"""In a row, without an answer: whoever drains behind a cut link does not get done."""


def hand_over(pipeline: Pipeline, source: SiteName, target: SiteName, target_number: int) -> Story[TakeoverReport]:
    """Move the active role from `source` to `target`; runs at the target."""
    # 1
    there = yield ObserveSite(source)
    here = yield ObserveSite(target)
    if not isinstance(there, SiteObserved) or not isinstance(here, SiteObserved):
        raise Unavailable("a handover needs both databases", code="ZT420", tries=("zerotail takeover plan",))
    row = there.standing.lineage.current
    if not there.standing.live_at(source) or row.durability is Durability.EXPOSED:
        raise NotAllowed(f"{source} is not active with a standby that is in step", code="ZT434")
    if not follows(here, there):
        raise NotAllowed(f"{target} is not the standby of {source}", code="ZT435")
    # 2, 3
    yield from _drain(source, there)
    # 4
    down = yield ShutDown(source)
    if not isinstance(down, Done):
        reason = f": {down.reason}" if isinstance(down, Refused) else ""
        yield from _give_up(
            source, there.standing.epoch, f"the database of {source} did not shut down{reason}", "ZT421"
        )
    # 5
    here = yield ObserveSite(target)
    if not isinstance(here, SiteObserved) or here.flushed < down.position:
        raise Unfinished(f"{target} lacks the end of the log of {source}; start {source} again", code="ZT422")
    return (yield from take_over(pipeline, target, target_number, source, cause="handover"))


def _drain(source: SiteName, there: SiteObserved) -> Story[None]:
    left = yield ObserveDrained(source)
    if isinstance(left, Drained) and left.doubts:
        raise NotAllowed(
            f"{left.doubts} messages are in doubt",
            code="ZT436",
            tries=("zerotail emissions list --in-doubt",),
        )
    epoch = there.standing.epoch
    draining = yield ChangeEpoch(source, epoch, phase=Phase.DRAINING)
    if not isinstance(draining, Done):
        reason = f": {draining.reason}" if isinstance(draining, Refused) else ""
        raise Unfinished(f"{source} did not stop its submissions{reason}", code="ZT423")
    silent = 0
    for _ in range(LOOKS):
        left = yield ObserveDrained(source)
        if isinstance(left, Drained) and not (left.instructions or left.emissions or left.doubts):
            return
        silent = 0 if isinstance(left, Drained) else silent + 1
        if silent == _SILENT_LOOKS:
            break
        if (yield Pause(_told_left(source, left))):
            break
    yield from _give_up(source, epoch, f"{source} did not drain in time", "ZT424")


def _told_left(source: SiteName, left: object) -> str:
    if not isinstance(left, Drained):
        return f"{source} to drain: its database does not answer"
    doubts = f", {left.doubts} in doubt" if left.doubts else ""
    return f"{source} to drain: {left.instructions} instructions and {left.emissions} messages are left{doubts}"


def _give_up(source: SiteName, epoch: Epoch, what: str, code: str) -> Story[NoReturn]:
    """Let the source take submissions again, if it answers, and say what became of it."""
    live = yield ChangeEpoch(source, epoch, phase=Phase.LIVE)
    if isinstance(live, Done):
        raise Unfinished(f"{what}; it goes on as before", code=code)
    raise Unfinished(
        f"{what} and does not answer; once it does, it goes on by itself",
        code="ZT425",
        tries=(f"zerotail takeover plan --to {source}", "zerotail handover resume"),
    )
