"""The gate: nothing leaves for the outside before the other site's log holds what it came from.

The question goes to the remote standby, never to the own database: there, a cancelled wait, an emptied list
of standbys, a terminated session or a restart all show rows that the other site does not have. One answer
carries everything that must fit, so that no two moments are mixed:

1. it is still in recovery: once promoted, it confirms nothing to the old site any more, which makes the
   gate the fence;
2. it is a copy of the asker's database (system identifier), on the asker's **timeline**;
3. the newest epoch it knows is the asker's own: positions of another lineage mean nothing;
4. it has applied the nonce of the asker's own life (`core.life`): it follows the very server that asks, and not what
   that was before its log lost an end;
5. it has flushed the wanted position.

A position is compared only after 1 to 4 hold. An epoch that says `exposed` is released without the
question, and has no second copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from zerotail.core.identity import Epoch, Lsn, Timeline

_NOTHING = Lsn(0)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: the database from which the rows were read, and the epoch in which that was."""

    system: int
    timeline: Timeline
    epoch: Epoch
    life: str = ""
    """The nonce of the life in which that was."""


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What the remote standby says of itself, in one statement."""

    in_recovery: bool
    system: int
    timeline: Timeline
    epoch: Epoch
    flushed: Lsn
    applied: Lsn = _NOTHING
    """Of its own files, too, before it receives any log. It opens nothing; it shows that a standby comes nearer."""
    life: str = ""
    """The newest nonce that it has applied."""

    @property
    def holds(self) -> Lsn:
        """How much of a log it is known to hold."""
        return max(self.flushed, self.applied)


@dataclass(frozen=True, slots=True)
class Release:
    """Why something may leave: the answer that opened the gate, or None because the epoch is exposed."""

    asker: Asker
    wanted: Lsn
    answer: GateAnswer | None


class Gate(Enum):
    """What an answer allows."""

    OPEN = "open"
    BEHIND = "the other site has not flushed it yet"
    NOT_A_STANDBY = "the other site's database is no standby any more"
    OTHER_SYSTEM = "the other site's database is a copy of another one"
    OTHER_TIMELINE = "the other site's database is on another timeline"
    OTHER_EPOCH = "the other site's database is in another epoch"
    AHEAD = "the other site holds more of the log than this site's database, which has lost the end of its own"
    OTHER_LIFE = "the other site's database has not heard yet that this one was started anew"


def is_ahead(answer: GateAnswer, here: Lsn) -> bool:
    """Whether the other site holds more of the log than the database that wrote it, which was asked *afterwards*.

    Within one history that cannot be: the log here has lost its end (a snapshot was restored, a disk lied), and is
    being written anew. What an answer says of positions then means nothing.
    """
    return answer.holds > here


def decide(answer: GateAnswer, asker: Asker, wanted: Lsn) -> Gate:
    """Whether what lies below `wanted` may leave."""
    if not answer.in_recovery:
        return Gate.NOT_A_STANDBY
    if answer.system != asker.system:
        return Gate.OTHER_SYSTEM
    if answer.timeline != asker.timeline:
        return Gate.OTHER_TIMELINE
    if answer.epoch != asker.epoch:
        return Gate.OTHER_EPOCH
    if answer.life != asker.life:
        return Gate.OTHER_LIFE
    return Gate.OPEN if answer.flushed >= wanted else Gate.BEHIND
