"""The stories meet the world: a driver that carries out their effects with the real adapters of one site."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import random
from threading import Event
from typing import Any, TypeVar

from zerotail import ports
from zerotail.channel.http import HttpReceiver
from zerotail.channel.receiver import Receiver
from zerotail.core.backoff import pause_before
from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, PartitionNumber, SiteName, TopicName
from zerotail.core.receiver import LEASE_SECONDS
from zerotail.deadline import Deadline
from zerotail.errors import Refused, Unavailable
from zerotail.flow.life import verify_life
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.cursor import Cursor
from zerotail.kafka.producer import RecordSender
from zerotail.postgres import doubt, feed, journal, lineage, outbox, owed, poison, reading
from zerotail.postgres.connection import Connection, connect
from zerotail.postgres.gate import ask_standby, observe_end
from zerotail.postgres.transaction import Session
from zerotail.postgres.way_in import drains, end_drain

T = TypeVar("T")
_GATE_SECONDS = 2.0
_PAUSE_SECONDS = 0.02
_IDLE_SECONDS = 0.05
_SHORT_PAUSES = 10
"""So many looks in a row find nothing to do before the pauses become longer."""
_SENDS = (ports.SendEmissions, ports.SendRecords)


class Stopped(Exception):
    """Somebody asked the story to end."""


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """Where a site's neighbours are; plain values, so that it can travel to executors."""

    site: SiteName
    dsn: str = field(repr=False)
    peer_dsn: str = field(repr=False)
    kafka: Cluster
    receivers: tuple[tuple[ChannelName, str], ...] = ()
    """Channel and address of each receiver that is reached over HTTP."""


def _seconds_of_the_machine() -> float:
    """A clock that never falls, and goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SiteAdapters:
    """Carries out effects at one site. One object per thread: it holds sessions and clients of its own."""

    def __init__(
        self,
        settings: AdapterSettings,
        transforms: reading.Transforms | None = None,
        *,
        patience_seconds: float | None = None,
        clock: Callable[[], float] = _seconds_of_the_machine,
    ) -> None:
        """With `patience_seconds` the site's own database has so long for each effect."""
        self.settings = settings
        site = settings.site
        self._database = Session(settings.dsn, patience_seconds=patience_seconds)
        self._peer_dsn = settings.peer_dsn
        self._peer: Connection | None = None
        self._cluster = settings.kafka
        self._sender = RecordSender(settings.kafka)
        self._intended: dict[Lane, float] = {}
        self._clock = clock
        self._cursors: dict[tuple[TopicName, PartitionNumber], Cursor] = {}
        self._receivers: dict[ChannelName, Receiver] = {
            channel: HttpReceiver.at(url, site) for channel, url in settings.receivers
        }
        read, write = self._database.read, self._database.write
        self._carry_out: dict[type[ports.Effect], Callable[[Any], Any]] = {
            ports.Submit: lambda e: write(lambda c: feed.submit(c, e, site)),
            ports.ReadFeed: self._read_feed,
            ports.RequestAgain: lambda e: write(lambda c: feed.request_again(c, e)),
            ports.ReadHead: lambda e: read(lambda c: journal.read_head(c, e)),
            ports.ClaimHead: lambda e: write(lambda c: journal.claim_head(c, e, site)),
            ports.RecordPoison: lambda e: write(lambda c: poison.record_poison(c, e)),
            ports.LoadState: lambda e: read(lambda c: journal.load_state(c, e)),
            ports.Commit: lambda e: write(lambda c: journal.commit_batch(c, e)),
            ports.ReadJournal: lambda e: read(lambda c: reading.read_journal(c, e, transforms or {})),
            ports.FindPlace: lambda e: read(lambda c: reading.find_place(c, e, transforms or {})),
            ports.ClaimLane: lambda e: write(lambda c: outbox.claim_lane(c, e, site)),
            ports.ReadLane: lambda e: read(lambda c: outbox.read_lane(c, e)),
            ports.RecordIntent: self._intend,
            ports.RecordAcknowledged: lambda e: write(lambda c: outbox.record_acknowledged(c, e, site)),
            ports.RecordDoubts: lambda e: write(lambda c: doubt.record_doubts(c, e, site)),
            ports.SettleDoubts: lambda e: write(lambda c: doubt.settle_doubts(c, e)),
            ports.ObserveDrained: lambda e: read(owed.observe_drained) if e.site == site else ports.Unreachable(),
            ports.OpenEpoch: lambda e: write(lambda c: lineage.open_epoch(c, e)),
            ports.ChangeEpoch: lambda e: write(lambda c: lineage.change_epoch(c, e)),
            ports.AskGate: lambda _: self._ask_gate(),
            ports.ReadEnd: lambda _: self._database.ask(observe_end),
            ports.ReadPosition: lambda _: read(lineage.observe_position),
            ports.EndLife: lambda e: write(lambda c: lineage.end_life(c, e)),
            ports.BeginLife: lambda e: write(lambda c: lineage.begin_life(c, e)),
            ports.SendRecords: self._sender.send,
            ports.PollRecords: self._poll,
            ports.ClaimAtReceiver: lambda e: self._receiver(e.lane).claim(e),
            ports.SendEmissions: self._send,
        }

    def carry_out(self, effect: ports.Effect) -> Any:
        """The result of one effect. A server that nobody has verified counts as one that does not answer: that is done
        here, and whoever asked asks again.
        """
        answer = self._carry_out[type(effect)](effect)
        if isinstance(answer, ports.Unreachable) and self._database.waits_for_life:
            self._database.waits_for_life = False
            run_to_end(verify_life(), self)
        return answer

    def attach(self, channel: ChannelName, receiver: Receiver) -> None:
        """Reach the channel's receiver this way; it is closed with everything else."""
        self._receivers[channel] = receiver

    def close(self) -> None:
        """Give back every session and client."""
        self._database.close()
        self._sender.close()
        for cursor in self._cursors.values():
            cursor.close()
        for receiver in self._receivers.values():
            receiver.close()
        self._forget_peer()

    def _read_feed(self, effect: ports.ReadFeed) -> Any:
        fed = self._database.read(lambda c: feed.read_feed(c, effect))
        if isinstance(fed, ports.Fed) and drains(fed.standing):
            self._database.write(end_drain)  # rows that come by SQL wait for it, if nobody drains any more
        return fed

    def _poll(self, effect: ports.PollRecords) -> Any:
        place = (effect.topic, effect.partition)
        cursor = self._cursors.get(place)
        if cursor is None:
            cursor = self._cursors[place] = Cursor(self._cluster, *place)
        return cursor.poll(effect)

    def _receiver(self, lane: Lane) -> Receiver:
        return self._receivers[lane.channel]

    def _intend(self, effect: ports.RecordIntent) -> Any:
        # The lease counts from before the intent can be seen by anybody else.
        self._intended[effect.lane] = self._clock()
        return self._database.write(lambda c: outbox.record_intent(c, effect, self.settings.site))

    def _send(self, effect: ports.SendEmissions) -> Any:
        """Send, unless the lease of a sender that had to store its intent has run out: it may be an old one by now."""
        receiver, intended = self._receiver(effect.lane), self._intended.get(effect.lane)
        if intended is not None and self._clock() - intended > LEASE_SECONDS:
            return ports.Unreachable(f"nothing was sent, the intent is older than {LEASE_SECONDS:g} s")
        return receiver.send(effect)

    def _ask_gate(self) -> Any:
        deadline = Deadline.after(_GATE_SECONDS)
        try:
            if self._peer is None:
                self._peer = connect(self._peer_dsn, deadline, application="zerotail gate")
            return ask_standby(self._peer, deadline)
        except (Unavailable, Refused):  # a database without our tables does not confirm anything, either
            self._forget_peer()
            return ports.Unreachable()

    def _forget_peer(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None


@cache
def shared_adapters(settings: AdapterSettings) -> SiteAdapters:
    """The adapters of this process, made once: an executor's workers run one task at a time and are reused."""
    return SiteAdapters(settings)


class Backoff:
    """The pauses of one lane before something is tried again: longer each time, until it goes well."""

    def __init__(self, draw: Callable[[], float] = random) -> None:
        self._draw = draw
        self._attempt = 0

    def next_seconds(self) -> float:
        """So long to wait now."""
        self._attempt += 1
        return pause_before(self._attempt, self._draw())

    def went_well(self) -> None:
        """The next pause is a short one."""
        self._attempt = 0


def run_to_end(story: ports.Story[T], adapters: SiteAdapters) -> T:
    """Run a story that never pauses, such as one micro-batch."""
    return drive(story, adapters, Event())


def drive(
    story: ports.Story[T],
    adapters: SiteAdapters,
    stop: Event,
    heed: Callable[[str], None] = lambda _reason: None,
    backoff: Backoff | None = None,
) -> T:
    """Run a story to its end; `Stopped` when it was asked to end before, between two effects.

    `heed` hears why the story pauses, and an empty text when something was sent: what it reads and asks in between does
    not show yet that it goes on. `backoff` may be older than the story: one that starts again in vain is not faster.
    """
    answer: Any = None
    idle = 0
    backoff = backoff or Backoff()
    while not stop.is_set():
        try:
            effect = story.send(answer)
        except StopIteration as ended:
            result: T = ended.value
            return result
        if isinstance(effect, ports.Pause):
            heed(effect.reason)
            idle = idle + 1 if effect.idle else 0
            if effect.retries:
                stop.wait(backoff.next_seconds())
            else:
                stop.wait(_PAUSE_SECONDS if idle <= _SHORT_PAUSES else _IDLE_SECONDS)
            answer = None
        else:
            answer = adapters.carry_out(effect)
            if isinstance(effect, _SENDS) and isinstance(answer, ports.Accepted | ports.Done):
                heed("")
                backoff.went_well()
                idle = 0
    story.close()
    raise Stopped
