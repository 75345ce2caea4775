"""The receiver that a configuration describes, and how to send to it."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import assert_never

from zerotail.channel.http import HttpReceiver
from zerotail.channel.kafka import KafkaReceiver
from zerotail.channel.postgres import PostgresReceiver
from zerotail.channel.receiver import Receiver
from zerotail.config import Channel, Configuration, HttpChannel, KafkaChannel, PostgresChannel, TopicChannel
from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, Epoch, SiteName, StageName
from zerotail.core.receiver import DoubtPolicy, ReceiverClass
from zerotail.errors import Misused
from zerotail.flow.emit import Sender
from zerotail.kafka.topic import Place
from zerotail.ports import Unreachable
from zerotail.postgres.receipt import Effect, insert_into


def outside_channels(configuration: Configuration) -> dict[ChannelName, StageName]:
    """The channels that an emitter serves, and the stage that emits on each; those to a topic are not among them."""
    return {
        channel: stage
        for stage, settings in configuration.stages.items()
        for channel in settings.emits
        if not isinstance(configuration.channels[channel], TopicChannel)
    }


def sender_of(configuration: Configuration, lane: Lane, site: SiteName) -> Sender:
    """How the lane's messages are sent."""
    channel = configuration.channels[lane.channel]
    if isinstance(channel, TopicChannel):
        raise Misused(f"the channel {lane.channel} leads to the topic {channel.topic}; its sender is a producer.")
    policy, window = DoubtPolicy.HOLD, channel.batch
    if isinstance(channel, HttpChannel) and channel.receiver == "R3":
        policy, window = DoubtPolicy(channel.policy), min(channel.batch, channel.doubt_window)
    return Sender(
        lane,
        ReceiverClass(channel.receiver),
        site,
        policy,
        window,
        release_exposed=configuration.takeover.exposed == "release",
    )


def open_receiver(channel: Channel, lane: Lane, site: SiteName) -> Receiver:
    """The sender's side of the lane's receiver; secrets are looked up now, headers for each connection."""
    match channel:
        case HttpChannel():
            return _http_receiver(channel, site)
        case KafkaChannel():
            settings = {name: value.reveal() for name, value in channel.settings.items()}
            settings["bootstrap.servers"] = channel.bootstrap
            place = Place(settings, channel.topic, lane.partition, channel.timeout.total_seconds())
            return KafkaReceiver(lane, place, transactional=channel.receiver == "R0")
        case PostgresChannel():
            receipts = channel.receiver == "R0"
            effect = insert_into(channel.table, drop_repeats=not receipts)
            named: tuple[str, Effect] | None = None
            if channel.statement:
                effect = Effect(channel.statement.encode())
            else:
                named = channel.table, insert_into(channel.table, drop_repeats=not receipts, named=True)
            patience = channel.timeout.total_seconds()
            return PostgresReceiver(
                channel.dsn.reveal(), effect, receipts=receipts, timeout_seconds=patience, named=named
            )
        case TopicChannel():
            raise Misused(f"the channel {lane.channel} leads to the topic {channel.topic}; its receiver is a stage.")
        case _:
            assert_never(channel)


def ask_http(channel: HttpChannel, lanes: Sequence[Lane], installation: str, seconds: float) -> list[Epoch | None]:
    """In which epochs an installation claimed lanes last. A receiver that does not answer about one is not asked about
    the next: a takeover waits for it.
    """
    receiver, told = _http_receiver(channel, SiteName(""), seconds), list[Epoch | None]()
    try:
        for lane in lanes:
            said = receiver.last_claim(lane, installation)
            if isinstance(said, Unreachable):
                break
            told.append(said)
        return told
    finally:
        receiver.close()


def _http_receiver(channel: HttpChannel, site: SiteName, seconds: float | None = None) -> HttpReceiver:
    tls = ssl.create_default_context(cafile=channel.ca)
    if channel.certificate is not None:
        tls.load_cert_chain(channel.certificate, channel.key)
    return HttpReceiver(
        channel.url.reveal(),
        site,
        claims_url=channel.last_number_url.reveal() if channel.last_number_url else "",
        headers=lambda: {name: value.reveal() for name, value in channel.headers.items()},
        timeout_seconds=channel.timeout.total_seconds() if seconds is None else seconds,
        tls=tls,
    )
