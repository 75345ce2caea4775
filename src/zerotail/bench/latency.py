"""How long each instruction took from its row, a moment before its commit, to the receiver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zerotail.core.identity import StageName
from zerotail.deadline import Deadline
from zerotail.drill.arrivals import read_arrivals
from zerotail.lab.receiver import ReceiverControl

_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Latency:
    """In seconds, over so many messages."""

    messages: int
    p50: float
    p99: float


def measure_latency(database: str, control: ReceiverControl, stage: StageName, channel: str, since: float) -> Latency:
    """Of every message whose row was inserted after `since`, in seconds since 1970."""
    attempts = control.attempts(deadline=Deadline.after(_PATIENCE_SECONDS))
    arrivals = read_arrivals(database, attempts, stage, channel, since)
    took = np.array([arrival.arrived_at - arrival.given_at for arrival in arrivals])
    p50, p99 = np.percentile(took, [50, 99])
    return Latency(len(took), float(p50), float(p99))
