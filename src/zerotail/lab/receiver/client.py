"""`ReceiverControl`: how a drill or a command speaks to the judge's side of a running receiver.

It sends no messages. Whoever sends has code of its own, written from the protocol page.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from zerotail.deadline import Deadline
from zerotail.errors import Broken, Misused, Unavailable, Unfinished
from zerotail.lab.receiver.protocol import (
    MAX_PAGE_ATTEMPTS,
    Attempt,
    AttemptsPage,
    Behaviour,
    BehaviourChange,
    ReceiverStatus,
    Totals,
)
from zerotail.lab.receiver.rudeness import Rudeness

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReceiverControl:
    """The control port of one receiver.

    `Unavailable` means that it was not reached or did not answer a question, `Unfinished` that it did not
    answer a command, `Misused` that it declined.
    """

    port: int

    def status(self, *, deadline: Deadline) -> ReceiverStatus:
        """What the receiver says of itself."""
        return self._ask("GET", "/status", ReceiverStatus, deadline)

    def totals(self, *, deadline: Deadline) -> Totals:
        """What happened, in numbers."""
        return self._ask("GET", "/totals", Totals, deadline)

    def attempts_page(
        self, since_sequence: int = 0, limit: int = MAX_PAGE_ATTEMPTS, *, deadline: Deadline
    ) -> AttemptsPage:
        """The attempts after a sequence, at most `limit` of them."""
        path = f"/attempts?since={since_sequence}&limit={limit}"
        return self._ask("GET", path, AttemptsPage, deadline)

    def attempts(self, since_sequence: int = 0, *, deadline: Deadline) -> Iterator[Attempt]:
        """The attempts after a sequence, up to the last one that exists when the iteration gets there."""
        while page := self.attempts_page(since_sequence, deadline=deadline).attempts:
            yield from page
            since_sequence = page[-1].sequence

    def behaviour(self, *, deadline: Deadline) -> Behaviour:
        """How it misbehaves at the moment."""
        return self._ask("GET", "/behaviour", Behaviour, deadline)

    def misbehave(
        self,
        *,
        lose_answers: int | UnsetType = UNSET,
        slow_ms: float | UnsetType = UNSET,
        unavailable: bool | UnsetType = UNSET,
        refuse_seconds: float | UnsetType = UNSET,
        detain: int | UnsetType = UNSET,
        rudeness: Rudeness | UnsetType = UNSET,
        rude_to: int | UnsetType = UNSET,
        deadline: Deadline,
    ) -> Behaviour:
        """Change what is given, leave the rest."""
        change = BehaviourChange(
            lose_answers=lose_answers,
            slow_ms=slow_ms,
            unavailable=unavailable,
            refuse_seconds=refuse_seconds,
            detain=detain,
            rudeness=rudeness,
            rude_to=rude_to,
        )
        return self._ask("PATCH", "/behaviour", Behaviour, deadline, msgspec.json.encode(change))

    def behave(self, *, deadline: Deadline) -> Behaviour:
        """Back to normal."""
        return self._ask("DELETE", "/behaviour", Behaviour, deadline)

    def _ask(self, method: str, path: str, kind: type[T], deadline: Deadline, body: bytes | None = None) -> T:
        status, answer = self._exchange(method, path, deadline, body)
        try:
            if status == HTTPStatus.OK:
                return msgspec.json.decode(answer, type=kind)
            sentence: str = msgspec.json.decode(answer, type=dict[str, str])["error"]
        except (msgspec.MsgspecError, KeyError) as error:
            raise Broken(f"port {self.port} is not the control port of a receiver: {error}") from error
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Unavailable(f"the receiver on port {self.port} cannot answer: {sentence}")
        raise Misused(f"the receiver declined: {sentence}")

    def _exchange(self, method: str, path: str, deadline: Deadline, body: bytes | None) -> tuple[int, bytes]:
        # A timeout of zero would mean "do not wait" to a socket.
        patience = max(0.001, deadline.seconds_left)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
        try:
            connection.connect()
        except OSError as error:
            raise Unavailable(f"the receiver's control port {self.port} does not answer: {error}") from error
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            sentence = f"the receiver's control port {self.port} gave no answer: {error}"
            raise (Unavailable(sentence) if method == "GET" else Unfinished(sentence)) from error
        finally:
            connection.close()
