"""Nothing leaves for the outside while the other site cannot confirm, and everything goes on when it can again."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from support.running import Running, trickle
from zerotail.deadline import Deadline
from zerotail.lab.fault import FaultReport, continue_target, cut_link, heal_link, stop_target
from zerotail.lab.link import BOTH, CutMode
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import MessageAttempt, Verdict

GRACE_SECONDS = 4.0
SILENCE_SECONDS = 8.0


@pytest.mark.parametrize(
    "mode",
    [pytest.param(CutMode.HANG, marks=pytest.mark.servers), pytest.param(CutMode.RESET, marks=pytest.mark.nightly)],
)
def test_a_cut_link_stops_emission_until_it_is_healed(system: Running, mode: CutMode) -> None:
    _stands_while(
        system,
        lambda: cut_link(system.lab, BOTH, mode),
        lambda: heal_link(system.lab, BOTH),
    )


@pytest.mark.servers
def test_a_frozen_standby_database_stops_emission_until_it_is_thawed(system: Running) -> None:
    _stands_while(
        system,
        lambda: stop_target(system.lab, "west.postgres"),
        lambda: continue_target(system.lab, "west.postgres"),
    )


def _stands_while(system: Running, hurt: Callable[[], FaultReport], heal: Callable[[], FaultReport]) -> None:
    # The load commits locally: with the other site away, whoever waits for both would wait in the database.
    with trickle(system, locally=True):
        system.wait_for_progress()
        assert hurt().bit
        hurt_at = time.time()
        system.wait("emission stands for a while", lambda: time.time() > hurt_at + SILENCE_SECONDS)
        said = system.status()
        emitters = system.words("emitter")
        healed_at = time.time()
        assert heal().bit
        system.wait_for_progress()
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert [one for one in _accepted_at(system) if hurt_at + GRACE_SECONDS < one < healed_at] == []
    assert said["answer"] != "ready"
    assert said["gate"]["open"] is False
    assert any(trouble.startswith("emission stands: gate closed") for trouble in said["troubles"]), said["troubles"]
    assert sum(stage["owed_messages"] for stage in said["stages"] if stage["stage"] == system.stage_name) > 0
    assert {(one["doing"], one["reason"]) for one in emitters.values()} == {("waiting", "the gate is closed")}


def _accepted_at(system: Running) -> list[float]:
    attempts = ReceiverControl(system.lab.receiver_control_port).attempts(deadline=Deadline.after(30))
    return [
        one.unix_seconds
        for one in attempts
        if isinstance(one, MessageAttempt) and one.channel == system.channel and one.verdict is Verdict.ACCEPTED
    ]
