"""What a Kafka client says of its own accord.

A broker that declines a login or a certificate shows in no answer: every question just runs into its time limit. The
client tells the reason beside that, to a callback, and goes on trying. It is kept here for the sentence that says why
nobody answers.
"""

from __future__ import annotations

from confluent_kafka import KafkaError


class Complaints:
    """The last reason for which a broker and its client did not come together."""

    def __init__(self) -> None:
        self._last = ""

    def note(self, error: KafkaError) -> None:
        """To be the client's `error_cb`."""
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._last = error.str()

    def behind(self, symptom: str) -> str:
        """The reason behind a symptom, or the symptom where no reason is known."""
        return self._last or symptom
