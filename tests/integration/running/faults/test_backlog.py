"""A receiver that takes nothing holds the stage back, not the database up."""

from __future__ import annotations

import pytest

from support.running import Running
from zerotail.deadline import Deadline
from zerotail.lab.fault import continue_target, stop_target
from zerotail.lab.receiver import ReceiverControl

ROWS = 4000
"""Of each producer in each partition: some ten times as many messages as may be owed."""
ALLOWED_BYTES = 64_000
BATCH_BYTES = 64_000
"""More than the messages of one micro-batch."""


@pytest.mark.parametrize(
    "how", [pytest.param("frozen", marks=pytest.mark.servers), pytest.param("unavailable", marks=pytest.mark.nightly)]
)
def test_a_stage_takes_no_more_than_it_may_owe(system: Running, how: str) -> None:
    receiver = ReceiverControl(system.lab.receiver_control_port)
    if how == "frozen":
        assert stop_target(system.lab, "outside.receiver").bit
    else:
        receiver.misbehave(unavailable=True, deadline=Deadline.after(10))
    before = system.counted("producer", "sent")
    system.insert(ROWS)
    system.wait("all is sent", lambda: system.counted("producer", "sent") - before >= 4 * ROWS)
    system.wait("both partitions wait", lambda: _reasons(system) == {"waiting"})
    words = system.words("stage")
    owed = [_owed_bytes(system, partition) for partition in range(system.partitions)]
    assert ALLOWED_BYTES <= max(owed) <= ALLOWED_BYTES + BATCH_BYTES
    for partition in range(system.partitions):
        assert "wait for acknowledgement, 64,000 are allowed" in words[partition]["reason"]
    if how == "frozen":
        assert continue_target(system.lab, "outside.receiver").bit
    else:
        receiver.behave(deadline=Deadline.after(10))
    system.wait_until_all_arrived()
    system.require_exactly_once()
    system.wait("status says that it goes on", lambda: "waiting" not in _reasons(system), 20)
    assert system.counted("producer", "sent") - before <= 3 * 4 * ROWS


def _reasons(system: Running) -> set[str]:
    words = system.words("stage")
    return {words[partition]["doing"] for partition in range(system.partitions)}


def _owed_bytes(system: Running, partition: int) -> int:
    stages = system.status()["stages"]
    return sum(
        int(one["owed_bytes"]) for one in stages if (one["stage"], one["partition"]) == (system.stage_name, partition)
    )
