"""A receiver whose faults are answers: whatever goes wrong in reaching it is the matter of its lane alone (E17).

1. It is opened when it is needed, and again after a fault: a file with a secret may come back.
2. What it has taken is counted: `accepted` hears of every batch.
3. What failed before anything could be sent is `Unreachable`; whatever fails later says nothing: `Indefinite`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from zerotail.channel.receiver import ClaimAnswer, Receiver, SendAnswer
from zerotail.errors import first_line
from zerotail.ports import Accepted, ClaimAtReceiver, Indefinite, SendEmissions, Unreachable

T = TypeVar("T")


class Contained:
    """The sender's side of one lane's receiver."""

    def __init__(self, open_it: Callable[[], Receiver], accepted: Callable[[int], None] = lambda _: None) -> None:
        self._open = open_it
        self._accepted = accepted
        self._receiver: Receiver | None = None

    def claim(self, effect: ClaimAtReceiver) -> ClaimAnswer:
        """Say who sends from now on, and learn the last number that arrived."""
        return self._ask(lambda receiver: receiver.claim(effect))

    def send(self, effect: SendEmissions) -> SendAnswer:
        """Send one batch and wait for its answer."""
        answer = self._ask(lambda receiver: receiver.send(effect))
        if isinstance(answer, Accepted):
            self._accepted(len(effect.values))
        return answer

    def close(self) -> None:
        """Give back connections and clients."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.close()

    def _ask(self, question: Callable[[Receiver], T]) -> T | Unreachable | Indefinite:
        try:
            receiver = self._receiver = self._receiver or self._open()
        except Exception as error:  # noqa: BLE001 - of any kind of channel, with any settings
            return Unreachable(f"its settings cannot be used: {_named(error)}")
        try:
            return question(receiver)
        except Exception as error:  # noqa: BLE001 - whatever somebody else's answer, or a driver, came up with
            self.close()
            return Indefinite(f"its answer cannot be read: {_named(error)}")


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
