"""Submission: an instruction counts as accepted when its row is behind the gate, not when COMMIT returned.

The client chooses the identifier, so asking again is harmless: the row is found, and its number with it.
Whoever got no answer that can be believed asks again, at whichever site is active by then.
"""

from __future__ import annotations

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial
from zerotail.flow.gate import pass_gate
from zerotail.ports import Pause, Refused, Story, Submit, Submitted


def submit(
    producer: ProducerNumber, partition: PartitionNumber, identifier: str, value: bytes, *, attempts: int = 3
) -> Story[Serial | Refused | None]:
    """The serial of the accepted instruction; `Refused` if it certainly is not there; None: nobody knows."""
    certain = True
    for _ in range(attempts):
        answer = yield Submit(producer, partition, identifier, value)
        if isinstance(answer, Submitted):
            certain = False
            if (yield from pass_gate(answer.standing, answer.position)) is not None:
                return answer.serial
        elif isinstance(answer, Refused):
            return answer if certain else None
        else:
            certain = False
            yield Pause("no answer to a submission")
    return None
