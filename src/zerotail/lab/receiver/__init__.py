"""The receiver: the outside world of the laboratory, and the judge of what reached it.

A process of its own (`python -m zerotail.lab.receiver`), written from `docs/receiver-protocol.md` and from
nothing else: it shares no code with whoever sends, so that the two cannot agree on the same mistake.

    http ──> routes ──> Desk ─┬─> judgement   what the class of the channel says to a number
                              ├─> Ledger      what was accepted so far, in memory
                              └─> Record      every attempt, on disk before the answer leaves

Drills reach it with `ReceiverControl`.
"""

from zerotail.lab.receiver.client import ReceiverControl
from zerotail.lab.receiver.protocol import (
    Attempt,
    AttemptsPage,
    Behaviour,
    ClaimAttempt,
    MessageAttempt,
    PartitionTotals,
    ReceiverClass,
    ReceiverStatus,
    Totals,
    Verdict,
)

__all__ = [
    "Attempt",
    "AttemptsPage",
    "Behaviour",
    "ClaimAttempt",
    "MessageAttempt",
    "PartitionTotals",
    "ReceiverClass",
    "ReceiverControl",
    "ReceiverStatus",
    "Totals",
    "Verdict",
]
