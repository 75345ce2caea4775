"""What a sender of a drill writes down: why it allows itself to send, before it sends.

A drill gives its processes the folder of its history in the environment (`HISTORY_VARIABLE`). Each lane of an emitter
then has a recorder of its own there; anywhere else nothing is recorded.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any

from zerotail.channel.receiver import ClaimAnswer, Receiver, SendAnswer
from zerotail.core.emission import Lane
from zerotail.core.identity import SiteName
from zerotail.drill.history import Released
from zerotail.drill.recording import HistoryWriter
from zerotail.ports import ClaimAtReceiver, SendEmissions

_STARTS = count(1)
HISTORY_VARIABLE = "ZEROTAIL_LAB_HISTORY"


class WitnessedReceiver:
    """A receiver that hears nothing before its release is written down."""

    def __init__(self, receiver: Receiver, folder: Path, site: SiteName, lane: Lane) -> None:
        self._receiver = receiver
        self._site = site
        # A lane that had stopped is opened again, by the same process.
        start = f"{lane.channel}-{lane.partition}-{next(_STARTS)}"
        self._writer = HistoryWriter(folder, f"sender-{site}-{os.getpid()}-{start}")

    def claim(self, effect: ClaimAtReceiver) -> ClaimAnswer:
        """As the receiver answers."""
        return self._receiver.claim(effect)

    def send(self, effect: SendEmissions) -> SendAnswer:
        """Write down why this may leave, then send it."""
        self._writer.append(released(self._site, effect))
        return self._receiver.send(effect)

    def close(self) -> None:
        """Nothing more is sent."""
        self._writer.close()
        self._receiver.close()


def released(site: SiteName, effect: SendEmissions) -> Released:
    """The release of a batch, as the checker reads it."""
    answer = effect.release.answer
    said: dict[str, Any] = {"by": "exposure"}
    if answer is not None:
        said = {
            "by": "gate",
            "other_lsn_flushed": answer.flushed,
            "other_timeline": answer.timeline,
            "other_epoch": answer.epoch,
            "other_in_recovery": answer.in_recovery,
        }
    return Released(
        site=site,
        epoch=effect.epoch,
        incarnation=effect.incarnation,
        channel=effect.lane.channel,
        partition=effect.lane.partition,
        target_partition=effect.lane.target,
        through=effect.last,
        timeline=effect.release.asker.timeline,
        lsn_wanted=effect.release.wanted,
        **said,
    )
