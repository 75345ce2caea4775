"""What the sender's side of every kind of channel can do, and what it may answer.

1. One object serves one lane, in one thread, with one request in flight.
2. `Unreachable` and `Refused` are said only when it is certain that nothing had an effect; whatever else goes wrong is
   `Indefinite`.
3. `Accepted` is said only when every message of the batch has its effect, now or since an earlier attempt.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from zerotail.core.receiver import Welcome
from zerotail.ports import (
    Accepted,
    ClaimAtReceiver,
    Conflicting,
    Indefinite,
    OtherInstallation,
    OutOfOrder,
    Refused,
    SendEmissions,
    Superseded,
    Unreachable,
)

ClaimAnswer: TypeAlias = Welcome | Superseded | OtherInstallation | Refused | Indefinite | Unreachable
SendAnswer: TypeAlias = (
    Accepted | Superseded | OtherInstallation | OutOfOrder | Conflicting | Refused | Indefinite | Unreachable
)


class Receiver(Protocol):
    """The sender's side of one lane's receiver."""

    def claim(self, effect: ClaimAtReceiver) -> ClaimAnswer:
        """Say who sends from now on, and learn the last number that arrived."""
        ...

    def send(self, effect: SendEmissions) -> SendAnswer:
        """Send one batch and wait for its answer."""
        ...

    def close(self) -> None:
        """Give back connections and clients."""
        ...
