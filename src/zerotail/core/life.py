"""Lives: each start of a primary is one, and nobody writes in it before it is verified.

Between two lives the end of the log may have been lost: a snapshot of the storage was restored, a disk had lied about
what it had flushed. Nothing shows it from inside: same system, same timeline, and the slot of the standby intact. What
shows it is the other site, which holds more than there is here; and what is written here is written over that.

1. A life is named by its nonce: a row that is written once the other site receives the log of this server, in its
   epoch, and holds no more than there is here. No two lives have one in common.
2. It is verified when the other site has applied the nonce, so that both have one history; or when the other site is
   out, which an operator has said (the epoch is exposed).
3. Until then a primary counts as one that does not answer: nobody numbers, submits, journals or sends.
4. The gate asks for the nonce (`core.gate`): only who has replayed it follows this life.
"""

from __future__ import annotations

from enum import Enum

from zerotail.core.gate import Asker, GateAnswer, is_ahead
from zerotail.core.identity import Lsn, Timeline


class Check(Enum):
    """What the other site's answer says about a life."""

    SOUND = "the other site holds no more of the log than there is here"
    AHEAD = "the other site holds more of the log than there is here"
    UNKNOWN = "nobody knows yet whether the other site holds more of the log than there is here"


def check(answer: GateAnswer, asker: Asker, here: Lsn) -> Check:
    """Whether a life may begin; `here` is where its log ended *after* the answer."""
    of_ours = answer.in_recovery and answer.system == asker.system and answer.timeline in (Timeline(0), asker.timeline)
    if not of_ours:
        return Check.UNKNOWN
    if is_ahead(answer, here):
        return Check.AHEAD
    # One that receives no log may hold what it has not applied yet.
    receives = answer.timeline == asker.timeline and answer.epoch == asker.epoch
    return Check.SOUND if receives else Check.UNKNOWN
