"""The gate and the outside: lanes, intents, acknowledgements, doubts, what a receiver answers."""

from __future__ import annotations

from collections.abc import Sequence

from zerotail.core.emission import Lane
from zerotail.core.gate import Asker, Release
from zerotail.core.identity import (
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
)
from zerotail.core.receiver import LaneRecord
from zerotail.ports.story import Effect, Result, Standing


class AskGate(Effect, frozen=True):
    """Ask the remote standby for everything that the gate compares, in one statement."""


class ReadPosition(Effect, frozen=True):
    """Ask the site's own database how far its log reaches now."""


class PositionRead(Result, frozen=True):
    """Whatever any standby of this database has flushed by then lies below `position`."""

    standing: Standing
    position: Lsn
    start: int = 0
    """When the server was started, in microseconds: which life it is, verified or not."""
    nonce: str = ""
    """Of that life, if it has one; it may not be verified yet."""


class ReadEnd(Effect, frozen=True):
    """Ask the site's own database, in one statement, as whom it asks for release now, and how far its log reaches."""


class EndRead(Result, frozen=True):
    """Whatever any standby of this database has flushed by then lies below `position`."""

    asker: Asker
    position: Lsn


class EndLife(Effect, frozen=True):
    """Say that the life with this nonce is not verified any more; refused when another one is in force."""

    nonce: str


class BeginLife(Effect, frozen=True):
    """Give the life that began with this start a nonce, or say that it is verified, in this epoch; refused when another
    one runs.
    """

    epoch: Epoch
    start: int
    verified: bool


class ClaimLane(Effect, frozen=True):
    """Become the sender of a lane: count its incarnation up, in the current epoch."""

    lane: Lane


class LaneClaimed(Result, frozen=True):
    """The new incarnation; `position` covers it."""

    standing: Standing
    incarnation: Incarnation
    position: Lsn


class ReadLane(Effect, frozen=True):
    """Read owed messages behind `after`, then the log's position; None reads the record of the lane only."""

    lane: Lane
    after: EmissionNumber | None
    limit: int


class LaneRead(Result, frozen=True):
    """Messages in order, the first with number `after` + 1."""

    standing: Standing
    position: Lsn
    incarnation: Incarnation
    """Of the newest sender: whoever reads another one than its own has been replaced."""
    record: LaneRecord
    values: Sequence[bytes]


class RecordIntent(Effect, frozen=True):
    """R3: say durably that numbers up to `number` may have been sent, and up to `acknowledged` have
    arrived.
    """

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    acknowledged: EmissionNumber
    number: EmissionNumber


class RecordAcknowledged(Effect, frozen=True):
    """Say that the receiver has everything up to `number`."""

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    number: EmissionNumber


class RecordDoubts(Effect, frozen=True):
    """R3: list the numbers that may or may not have arrived; listing one again changes nothing."""

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    first: EmissionNumber
    last: EmissionNumber


class SettleDoubts(Effect, frozen=True):
    """R3, an operator's decision: everything up to `received` has arrived, the rest of the doubts has not.

    Refused unless the doubts were listed by the sender that is at work now: that one waits for the answer
    and has not sent anything. A number that a sender merely intends at this moment is not a doubt.
    """

    lane: Lane
    received: EmissionNumber


class ClaimAtReceiver(Effect, frozen=True):
    """Tell the receiver who sends from now on; the answer is a `Welcome`, or `Superseded`."""

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    installation: str = ""
    """The identity of the installation, as receivers are told it."""


class SendEmissions(Effect, frozen=True):
    """Send a batch; numbers up to `doubtful_until` are flagged as possible repeats."""

    lane: Lane
    epoch: Epoch
    incarnation: Incarnation
    first: EmissionNumber
    values: Sequence[bytes]
    doubtful_until: EmissionNumber
    release: Release
    """Why they may leave: evidence for the log."""
    installation: str = ""
    """The identity of the installation, as receivers are told it."""

    @property
    def exposed(self) -> bool:
        """Whether no other site has what they came from. Told beside the message, where no receiver has to know it."""
        return self.release.answer is None

    @property
    def last(self) -> EmissionNumber:
        """The number of the last message."""
        return EmissionNumber(self.first + len(self.values) - 1)


class Accepted(Result, frozen=True):
    """The receiver has everything up to `last`."""

    last: EmissionNumber


class Superseded(Result, frozen=True):
    """The receiver has met a newer sender."""

    epoch: Epoch


class OtherInstallation(Result, frozen=True):
    """The receiver has messages of another installation on this lane, under numbers that mean something else here."""

    installation: str


class OutOfOrder(Result, frozen=True):
    """The receiver lacks a number before the first one sent; it has everything up to `last`."""

    last: EmissionNumber


class Conflicting(Result, frozen=True):
    """The receiver has the number with other bytes."""

    number: EmissionNumber
