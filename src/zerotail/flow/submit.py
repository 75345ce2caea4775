"""Submission: an instruction counts as accepted when its row is behind the gate, not when COMMIT returned.

The client chooses the identifier, so asking again is harmless: the row is found, and its number with it.
Whoever got no answer that can be believed asks again, at whichever site is active by then.

A site that works without the other one has no gate: what it accepts is stored once, and its answer says so. Where such
a site holds back what it owes, it accepts nothing: a row is stored, and accepted when both sites have it.
"""

from __future__ import annotations

from zerotail.core.epoch import Durability
from zerotail.core.identity import PartitionNumber, ProducerNumber
from zerotail.core.intake import AcceptedSerial
from zerotail.flow.gate import pass_gate
from zerotail.ports import Held, Pause, Refused, Story, Submit, Submitted


def submit(
    producer: ProducerNumber,
    partition: PartitionNumber,
    identifier: str,
    value: bytes,
    *,
    attempts: int = 3,
    accept_exposed: bool = True,
) -> Story[AcceptedSerial | Refused | Held | None]:
    """The serial of the accepted instruction, with its durability; `Refused` if it certainly is not there; `Held` if it
    is, at a site that works alone and holds; None: nobody knows.
    """
    certain = True
    for _ in range(attempts):
        answer = yield Submit(producer, partition, identifier, value)
        if isinstance(answer, Submitted):
            certain = False
            if answer.standing.lineage.current.durability is Durability.EXPOSED and not accept_exposed:
                return Held()
            release = yield from pass_gate(answer.standing, answer.position)
            if release is not None:
                return AcceptedSerial(answer.serial, "exposed" if release.answer is None else "gated")
        elif isinstance(answer, Refused):
            return answer if certain else None
        else:
            certain = False
            yield Pause("no answer to a submission")
    return None
