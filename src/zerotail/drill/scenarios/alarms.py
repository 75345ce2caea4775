"""The watcher at the standby takes over by itself: because the site is lost, or only because it looks lost.

It cannot tell the one from the other, and does not have to: whatever the old site does afterwards, nothing of it is
confirmed any more, so that the outside sees each message once.
"""

from __future__ import annotations

import time

from zerotail.drill import blows
from zerotail.drill.acts import start_watcher, wait_for_watcher
from zerotail.drill.example import SILENCE_SECONDS
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario, current_epoch

_SHORT_SECONDS = SILENCE_SECONDS / 2
_TIMES_SLOW = 3


def _automatic(stage: Rehearsal) -> None:
    watcher = start_watcher(stage)
    blows.kill_site(stage, stage.active)
    wait_for_watcher(stage, watcher)


def _cut_link(stage: Rehearsal) -> None:
    watcher = start_watcher(stage)
    fault = blows.cut(stage)
    wait_for_watcher(stage, watcher)
    stage.wait_for_new(MESSAGES)
    blows.heal(stage, fault)
    stage.wait_for_new(MESSAGES)


def _frozen_site(stage: Rehearsal) -> None:
    watcher = start_watcher(stage)
    fault = blows.freeze_site(stage, stage.active)
    wait_for_watcher(stage, watcher)
    stage.wait_for_new(MESSAGES)
    blows.thaw_site(stage, fault)
    stage.wait_for_new(MESSAGES)


def _slow_site(stage: Rehearsal) -> None:
    """It stands still again and again, each time for less than the watcher's patience."""
    watcher = start_watcher(stage)
    before = current_epoch(stage).epoch
    for _ in range(_TIMES_SLOW):
        fault = blows.freeze_site(stage, stage.active)
        time.sleep(_SHORT_SECONDS)
        blows.thaw_site(stage, fault)
        stage.wait_for_new(MESSAGES)
    stage.promise("a slow site keeps its role", current_epoch(stage).epoch == before)
    stage.promise("the watcher watches on", not watcher.ended)


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
        _cut_link,
        ("cut hang",),
    ),
    Scenario(
        "false-alarm-frozen-site",
        "the active site stands still for longer than the watcher waits, and goes on later",
        _frozen_site,
        ("freeze",),
    ),
    Scenario(
        "false-alarm-slow-site",
        "the active site stands still three times, each time for less than the watcher waits; no role changes",
        _slow_site,
        ("freeze",),
    ),
)
