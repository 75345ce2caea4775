"""The watcher at the standby takes over by itself: because the site is lost, or only because it looks lost.

It cannot tell the one from the other, and does not have to: whatever the old site does afterwards, nothing of it is
confirmed any more, so that the outside sees each message once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from zerotail.drill import blows
from zerotail.drill.acts import silent_looks, start_watcher, wait_for_watcher, wait_until_noticed
from zerotail.drill.rehearsal import Fault, Rehearsal
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario, current_epoch, old_site_learns

_TIMES_SLOW = 3
_LOOKS = 2
"""Of a watcher at a silent site take 2.5 s each: at the second one it has been silent for more than half of what it
takes to take over, at the third one for longer than that.
"""


def _automatic(rehearsal: Rehearsal) -> None:
    watcher = start_watcher(rehearsal)
    blows.kill_site(rehearsal, rehearsal.active)
    wait_for_watcher(rehearsal, watcher)


def _false_alarm(
    rehearsal: Rehearsal, *, strike: Callable[[Rehearsal], Fault], heal: Callable[[Rehearsal, Fault], None]
) -> None:
    """The site is only out of sight, and is there again when the other one has taken over."""
    watcher = start_watcher(rehearsal)
    fault = strike(rehearsal)
    wait_for_watcher(rehearsal, watcher)
    rehearsal.wait_for_new(MESSAGES)
    rehearsal.watch_departure(rehearsal.processes[rehearsal.standby])
    heal(rehearsal, fault)
    rehearsal.wait_for_new(MESSAGES)


def _slow_site(rehearsal: Rehearsal) -> None:
    """It stands still again and again, each time for less than the watcher's patience."""
    watcher = start_watcher(rehearsal, heard=True)
    epoch = current_epoch(rehearsal).epoch
    for _ in range(_TIMES_SLOW):
        before = silent_looks(rehearsal, watcher)
        fault = blows.freeze_site(rehearsal, rehearsal.active)
        noticed = wait_until_noticed(rehearsal, watcher, _LOOKS, before)
        blows.thaw_site(rehearsal, fault)
        rehearsal.promise("the watcher noticed the silence", noticed)
        rehearsal.wait_for_new(MESSAGES)
    rehearsal.promise("the watcher was patient", "taking over" not in watcher.said())
    rehearsal.promise("a slow site keeps its role", current_epoch(rehearsal).epoch == epoch)
    rehearsal.promise("the watcher watches on", not watcher.ended)


SCENARIOS = (
    Scenario(
        "automatic-takeover",
        "the active site is lost and nobody is there: the watcher takes over",
        _automatic,
        ("site-loss",),
    ),
    Scenario(
        "false-alarm-cut-link",
        "only the link is cut; the watcher takes over from a site that is alive and well",
        partial(_false_alarm, strike=blows.cut, heal=blows.heal),
        ("cut hang",),
        afterwards=old_site_learns,
    ),
    Scenario(
        "false-alarm-frozen-site",
        "the active site stands still for longer than the watcher waits, and goes on later",
        partial(_false_alarm, strike=lambda stage: blows.freeze_site(stage, stage.active), heal=blows.thaw_site),
        ("freeze",),
        afterwards=old_site_learns,
    ),
    Scenario(
        "false-alarm-slow-site",
        "the active site stands still three times, each time for less than the watcher waits; no role changes",
        _slow_site,
        ("freeze",),
    ),
)
