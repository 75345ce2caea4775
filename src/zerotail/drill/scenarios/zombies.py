"""Whoever was frozen goes on later, and does not know that it is old."""

from __future__ import annotations

from zerotail.drill import blows
from zerotail.drill.acts import bring_back, hand_over, take_over
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.scenarios.scenario import END_SECONDS, MESSAGES, SUPERSEDED, Scenario


def _zombie_site(stage: Rehearsal) -> None:
    zombie = stage.active
    detained = blows.detain_message(stage)
    frozen = blows.freeze_site(stage, zombie)

    def hear(step: str, done: bool) -> None:
        if (step, done) == ("claim lanes", True):
            blows.let_message_arrive(stage, detained)

    take_over(stage, stage.standby, hear=hear)
    stage.wait_for_new(MESSAGES)
    blows.thaw_site(stage, frozen)
    if stage.layout.receiver_class == "R2":  # the only one that tells an old sender that it is old
        ended = stage.processes[zombie].says_within(END_SECONDS, SUPERSEDED)
        stage.promise("the sender that was frozen ends by itself within 5 s", ended)
    stage.wait_for_new(MESSAGES)


def _zombie_database(stage: Rehearsal) -> None:
    home = stage.active
    blows.kill_part(stage, f"{home}.postgres")
    take_over(stage, stage.standby)
    stage.wait_for_new(MESSAGES)
    lost_at = stage.fault_at
    blows.restart_database(stage, home, clients=3)
    stage.fault_at = lost_at
    stage.wait_for_new(MESSAGES)


def _frozen_sender(stage: Rehearsal) -> None:
    home = stage.active
    detained = blows.detain_message(stage)
    frozen = blows.freeze_senders(stage, home)
    blows.kill_part(stage, home)
    take_over(stage, stage.standby)
    stage.wait_for_new(MESSAGES)
    bring_back(stage, home)
    hand_over(stage, home)
    stage.wait_for_new(MESSAGES)
    blows.thaw_senders(stage, frozen)
    blows.let_message_arrive(stage, detained)
    ended = stage.strays[-1].says_within(2 * END_SECONDS, SUPERSEDED)
    stage.promise("the processes that were frozen end by themselves", ended)
    stage.end_strays()
    stage.wait_for_new(MESSAGES)


SCENARIOS = (
    Scenario(
        "zombie-site",
        "the active site freezes with a message on the wire, is taken over, and goes on as if nothing were",
        _zombie_site,
        ("message-detained", "freeze"),
    ),
    Scenario(
        "zombie-database",
        "the database of the active site is lost, and starts again as a primary when the other site has taken over",
        _zombie_database,
        ("kill", "database-restarted"),
    ),
    Scenario(
        "frozen-sender-after-failback",
        "processes that were frozen before a takeover go on after the failback",
        _frozen_sender,
        ("message-detained", "freeze", "kill"),
    ),
)
