"""Whoever was frozen goes on later, and does not know that it is old."""

from __future__ import annotations

from zerotail.drill import blows
from zerotail.drill.acts import bring_back, hand_over, take_over
from zerotail.drill.commands import CLAIM_LANES
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.running import ALL, EMITTER
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario, old_site_learns, promise_departure


def _zombie_site(rehearsal: Rehearsal) -> None:
    zombie = rehearsal.active
    detained = blows.detain_message(rehearsal)
    frozen = blows.freeze_site(rehearsal, zombie)

    def hear(step: str, done: bool) -> None:
        if (step, done) == (CLAIM_LANES, True):
            blows.let_message_arrive(rehearsal, detained)

    take_over(rehearsal, rehearsal.standby, hear=hear)
    rehearsal.wait_for_new(MESSAGES)
    old = rehearsal.processes[zombie]
    rehearsal.watch_departure(old)
    blows.thaw_site(rehearsal, frozen)
    if rehearsal.layout.receiver_class == "R2":  # the only one that tells an old sender that it is old
        # Who waits for the next turn ends the sender alone: its own database has not refused the stages yet.
        promise_departure(rehearsal, (EMITTER,) if old.standby else ALL)
    rehearsal.wait_for_new(MESSAGES)


def _zombie_database(rehearsal: Rehearsal) -> None:
    home = rehearsal.active
    blows.kill_part(rehearsal, f"{home}.postgres")
    take_over(rehearsal, rehearsal.standby)
    rehearsal.wait_for_new(MESSAGES)
    lost = rehearsal.fault
    blows.restart_database(rehearsal, home)
    rehearsal.promise("an old primary that is started anew takes no rows", not blows.takes_rows(rehearsal, home))
    rehearsal.fault = lost
    rehearsal.watch_departure(rehearsal.processes[home])
    rehearsal.wait_for_new(MESSAGES)


def _frozen_sender(rehearsal: Rehearsal) -> None:
    home = rehearsal.active
    detained = blows.detain_message(rehearsal)
    frozen = blows.freeze_processes(rehearsal, home)
    blows.kill_part(rehearsal, home)
    take_over(rehearsal, rehearsal.standby)
    rehearsal.wait_for_new(MESSAGES)
    bring_back(rehearsal, home)
    hand_over(rehearsal, home)
    rehearsal.wait_for_new(MESSAGES)
    rehearsal.watch_departure(rehearsal.strays[-1])
    blows.thaw_processes(rehearsal, frozen)
    blows.let_message_arrive(rehearsal, detained)
    promise_departure(rehearsal)
    rehearsal.end_strays()
    rehearsal.wait_for_new(MESSAGES)


SCENARIOS = (
    Scenario(
        "zombie-site",
        "the active site freezes with a message on the wire, is taken over, and goes on as if nothing were",
        _zombie_site,
        ("message-detained", "freeze"),
        afterwards=old_site_learns,
    ),
    Scenario(
        "zombie-database",
        "the database of the active site is lost, and starts again as a primary when the other site has taken over",
        _zombie_database,
        ("kill", "database-restarted"),
        afterwards=old_site_learns,
    ),
    Scenario(
        "frozen-sender-after-failback",
        "processes that were frozen before a takeover go on after the failback",
        _frozen_sender,
        ("message-detained", "freeze", "kill"),
    ),
)
