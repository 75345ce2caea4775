"""Channels: the ways on which emissions leave, and what their receivers can do.

A receiver's class says what "exactly once" rests on; the kinds differ in which classes they can be at all:

    http       R0, R1, R2, R3   R0 and R2 are asked for the last number they have, so they need a URL for that
    kafka      R0, R1           R0 through a transactional producer; R1 when its readers drop repeated numbers
    postgres   R0, R1           the number is stored beside the effect, or a unique key drops the repeat
    topic      R0               the next stage's head is the acknowledgement
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from zerotail.config import field
from zerotail.config.part import Part
from zerotail.config.problem import Unfit


class _Outside(Part):
    """What the channels that leave the system have in common."""

    kind: str
    """The kind of channel."""
    timeout: field.Duration = timedelta(seconds=10)
    """How long the receiver may take to answer."""
    batch: Annotated[int, Field(ge=1, le=10_000), field.whole] = 100
    """The most messages in one request; one request at a time is on its way for each partition."""


class HttpChannel(_Outside):
    """Messages as HTTP requests."""

    kind: Literal["http"]
    """The kind of channel."""
    url: field.WebAddress
    """Where messages are posted to."""
    receiver: Literal["R0", "R1", "R2", "R3"]
    """What the receiver can do."""
    last_number_url: field.WebAddress | None = None
    """Where a sender claims the channel and hears the last number that arrived. For R0 and R2."""
    headers: Mapping[field.HeaderName, field.HeaderValue] = {}
    """Headers of every request; secrets in them by reference."""
    ca: field.FilePath | None = None
    """Certificates that vouch for the receiver, in a PEM file. Without it, those of the system."""
    certificate: field.FilePath | None = None
    """The sender's own certificate, in a PEM file, for a receiver that wants to see one."""
    key: field.FilePath | None = None
    """The key of that certificate. Without it, it is in the same file."""
    policy: Literal["hold", "resend"] | None = None
    """What happens to messages in doubt after a crash: `hold` for the operator, or `resend`. For R3."""
    window: Annotated[int, Field(ge=1, le=10_000), field.whole] | None = None
    """The most messages that can be in doubt after a crash of the sender. For R3."""

    @model_validator(mode="after")
    def _fields_fit_the_receiver(self) -> Self:
        if self.receiver in ("R0", "R2") and self.last_number_url is None:
            raise Unfit(f"a receiver of class {self.receiver} is asked for its last number", "add last_number_url")
        if self.receiver in ("R1", "R3") and self.last_number_url is not None:
            raise Unfit(
                f"a receiver of class {self.receiver} cannot say its last number",
                "remove last_number_url, or make it R2",
            )
        if self.receiver == "R3" and self.policy is None:
            raise Unfit("a receiver of class R3 leaves doubts after a crash", "add policy: hold or policy: resend")
        if self.receiver != "R3" and (self.policy or self.window):
            raise Unfit(f"policy and window are for class R3; a receiver of class {self.receiver} leaves no doubts")
        return self

    @property
    def doubt_window(self) -> int:
        """The most messages in doubt after a crash of the sender."""
        return self.window or 1


class KafkaChannel(_Outside):
    """Messages into a topic of a Kafka cluster that is not ours."""

    kind: Literal["kafka"]
    """The kind of channel."""
    bootstrap: field.Brokers
    """Brokers of that cluster."""
    topic: field.TopicName
    """The topic there."""
    receiver: Literal["R0", "R1"]
    """R0: transactional, for readers with read_committed. R1: readers drop repeated numbers."""
    settings: field.ClientSettings = Field(default={})
    """Settings of the Kafka client."""


class PostgresChannel(_Outside):
    """Messages as rows of a database that is not ours."""

    kind: Literal["postgres"]
    """The kind of channel."""
    dsn: field.ConnectionString
    """Connection string of that database."""
    table: field.TableName
    """The table there."""
    statement: field.PlainText | None = None
    """What to do with a message instead of storing it in the table: one SQL statement with %(number)s, %(value)s,
    %(channel)s, %(partition)s, %(possible_duplicate)s and %(exposed)s.
    """
    receiver: Literal["R0", "R1"]
    """R0: the last number is stored in the same transaction. R1: a unique key on the number drops repeats."""


class TopicChannel(Part):
    """Messages into one of the configuration's own topics, for another stage."""

    kind: Literal["topic"]
    """The kind of channel."""
    topic: field.TopicName
    """One of `topics`."""
    receiver: Literal["R0"] = "R0"
    """Always R0: the next stage's head is the acknowledgement."""


Channel = Annotated[
    HttpChannel | KafkaChannel | PostgresChannel | TopicChannel,
    Field(discriminator="kind"),
]
