"""In which epoch a receiver was claimed last: asked before a takeover, without claiming anything.

Only claims of our own installation count: epochs of another one, or of a former life of this one, say nothing of what
is missing in a copy, and its lanes are not ours anyway (`core/installation.py`).

Receivers of class R0 in a database and R2 over HTTP can say it. One that does not answer, or does not know the
question, is no obstacle here: the claim itself is made later, and meets the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from zerotail.channel.configured import ask_http
from zerotail.config import Configuration, HttpChannel, PostgresChannel
from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, Epoch, PartitionNumber
from zerotail.errors import ZerotailError
from zerotail.postgres.receipt import ask_receipts

_LANES = 8
"""Whoever works claims every lane; some of them are enough to find it."""
_SECONDS = 2.0


def ask_channels(configuration: Configuration, installation: str) -> Mapping[ChannelName, Epoch | None]:
    """The newest epoch in which each channel was claimed by this installation, of those that can say it."""
    asked = {
        channel: configuration.topics[stage.consumes].partitions
        for stage in configuration.stages.values()
        for channel in stage.emits
        if configuration.channels[channel].kind in ("http", "postgres")
    }
    if not asked:
        return {}
    with ThreadPoolExecutor(len(asked)) as pool:
        found = pool.map(lambda name: _ask(configuration, name, asked[name], installation), asked)
        return {name: epoch for name, epoch in zip(asked, found, strict=True) if epoch is not None}


def _ask(configuration: Configuration, name: ChannelName, partitions: int, installation: str) -> Epoch | None:
    channel, newest = configuration.channels[name], None
    lanes = [Lane(name, PartitionNumber(number)) for number in range(min(partitions, _LANES))]
    try:
        match channel:
            case HttpChannel(receiver="R2"):
                answers = ask_http(channel, lanes, installation, _SECONDS)
            case PostgresChannel(receiver="R0"):
                answers = ask_receipts(channel.dsn.reveal(), lanes, installation, _SECONDS)
            case _:
                return None
        newest = max((epoch for epoch in answers if epoch is not None), default=None)
    except (OSError, ZerotailError):
        return None
    return newest
