"""The parts of the simulated world: two sites, the link between them, the outside.

A site has a database, Kafka and a link; the outside has a receiver per lane. Here is who can reach whom,
how rows get into a log, and how a log gets to the other site. What effects do with all this is in
`normal_day.py` and `bad_day.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from zerotail import ports
from zerotail.core.emission import Lane
from zerotail.core.epoch import EpochRow
from zerotail.core.head import Segment
from zerotail.core.identity import (
    Epoch,
    Incarnation,
    PartitionNumber,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    TopicName,
)
from zerotail.core.poison import Decision
from zerotail.core.receiver import DoubtPolicy, ReceiverClass
from zerotail.failover.takeover import Pipeline
from zerotail.flow.life import verify_life
from zerotail.flow.stage import Stage
from zerotail.simulation.kafka import Log
from zerotail.simulation.outside import Attempt, ClaimNoted, Kind, Receiver, Writer
from zerotail.simulation.postgres import Server, Waiting, Write

EAST, WEST = SiteName("east"), SiteName("west")
SITES = (EAST, WEST)
OTHER = {EAST: WEST, WEST: EAST}
NUMBER = {EAST: 0, WEST: 1}

UNREACHABLE = ports.Unreachable()
INDEFINITE = ports.Indefinite()
DONE = ports.Done()
READ_ONLY = ports.Refused("the database is a standby")
NOT_LIVE = ports.Refused("this site is not live")
OTHER_EPOCH = ports.Refused("another epoch is current")
OTHER_HEAD = ports.Refused("the head has moved")


class Blocked:
    """The effect waits for somebody else; it is tried again a little later."""


BLOCKED = Blocked()


@dataclass(frozen=True, slots=True)
class Topology:
    """What runs at each site."""

    stages: Sequence[Stage]
    producers: Mapping[StageName, Sequence[ProducerNumber]]
    feeds: Sequence[ports.Feed]
    lanes: Mapping[Lane, ReceiverClass]
    lane_stages: Mapping[Lane, StageName]
    inner: Mapping[ProducerNumber, Lane] = field(default_factory=dict)
    """Producers that are upstream stages, and the lane without its target partition."""
    policy: DoubtPolicy = DoubtPolicy.HOLD
    kind: Kind = Kind.HTTP
    """What receivers of class R0 are."""

    @property
    def pipeline(self) -> Pipeline:
        """The part that a takeover has to know."""
        return Pipeline(self.stages, self.producers, self.lanes)


class DecidedNote(NamedTuple):
    """An operator's decision, as it was stored; None is to try again."""

    time: int
    stage: StageName
    partition: PartitionNumber
    producer: ProducerNumber
    serial: Serial
    digest: bytes
    decision: Decision | None


class Actor(Writer):
    """Whoever yields an effect: at which site, and what its session waits for."""

    __slots__ = ("lives", "looked_at", "read_at", "waiting")
    site: SiteName

    def __init__(self, site: SiteName, read_at: int = 0) -> None:
        super().__init__(site)
        self.lives = False
        """Whether its session is there: not that of a request on its way, or of a process that has ended."""
        self.read_at = read_at
        """When it last read what it owes: a release is as old as that."""
        self.looked_at = 0
        """How much of the log the site had that it looked at last."""
        self.waiting: tuple[Waiting, Any] | None = None


class Witness:
    """Takes note of what the judges need to know; a run that is not judged in full keeps little of it."""

    def opened(self, time: int, row: EpochRow) -> None:
        """An epoch row was written."""

    def live(self, time: int, row: EpochRow) -> None:
        """An epoch went live; the row is as it was before."""

    def gated(self, time: int, row: EpochRow) -> None:
        """An epoch went back to gated."""

    def promoted(self, time: int, site: SiteName) -> None:
        """A standby became a primary."""

    def released(self, time: int, site: SiteName, effect: ports.SendEmissions) -> None:
        """A batch left for the outside."""

    def doubts(self, time: int, effect: ports.RecordDoubts) -> None:
        """Numbers were listed as in doubt."""

    def acknowledged(self, site: SiteName, identifier: str, durability: str) -> None:
        """A client was told that its instruction is accepted, and at how many sites it is stored."""


class Parts:
    """What the two sites and the outside consist of, and how one part reaches another."""

    def __init__(self, topology: Topology, *, synchronous: bool, fence: bool = False) -> None:
        self.topology = topology
        self.synchronous = synchronous
        self.fence = fence
        self.time = 0
        """Ticks of the simulated clock."""
        self.moment = 0
        """Counts effects, so that every event has a place of its own in the history."""
        self.servers = {site: Server(site, 7) for site in SITES}
        self.logs: dict[tuple[SiteName, TopicName, PartitionNumber], Log] = {}
        self.kafka_up = dict.fromkeys(SITES, True)
        self.outside_up = dict.fromkeys(SITES, True)
        self.site_up = dict.fromkeys(SITES, True)
        self.link_up = {(EAST, WEST): True, (WEST, EAST): True}
        self.outside: list[Attempt | ClaimNoted] = []
        """What arrived at receivers, in the order in which it arrived."""
        self.marks: dict[str, int] = {}
        """Rare states that were reached, and how often."""
        self.receivers = {
            lane: Receiver(lane, receiver, self.outside, topology.kind, self.mark)
            for lane, receiver in topology.lanes.items()
        }
        self.kept: list[tuple[SiteName, Segment, StageName, PartitionNumber]] = []
        self.diverged: list[tuple[SiteName, Segment, StageName, PartitionNumber]] = []
        """Segments that only a replaced copy had; those that were kept for audit are in `kept`."""
        self.destroyed: set[SiteName] = set()
        self.active: SiteName = EAST
        """In the operators' notebook: the site that went on last."""
        self.out: SiteName | None = None
        """In the operators' notebook: the site that was declared out and has not been brought back."""
        self.decided: list[DecidedNote] = []
        """What operators decided about records that stopped a partition, in order."""
        self.power_off: Callable[[SiteName], None] = lambda _: None
        self.witness: Witness = Witness()
        self._logs_made = 0
        self.clients_wait = False
        """Whether clients take nothing for accepted that is stored at one site only."""
        self.given = False
        """Whether clients draw the serials of their instructions themselves, and store them in any order."""
        self.drawn: dict[str, tuple[ports.Submit, Serial]] = {}
        """Serials that clients have drawn, by identifier, and whose row is not stored yet."""
        self.lagging: dict[SiteName, int] = {}
        """How many entries the standby lacks that would be promoted in place of the one that was looked at."""
        self.drained_by: dict[SiteName, Actor] = {}
        """Who shut the way in of a site last; it is shut for as long as that one lives."""
        self._stages = {(stage.name, stage.partition): stage for stage in topology.stages}

    def mark(self, name: str) -> None:
        """A rare state was reached."""
        self.marks[name] = self.marks.get(name, 0) + 1

    # Reaching things.

    def reachable(self, source: SiteName, target: SiteName) -> bool:
        """Whether a question from one site to another gets through, and its answer back."""
        if not self.site_up[target]:
            return False
        return source == target or (self.link_up[source, target] and self.link_up[target, source])

    def server(self, actor: Actor, site: SiteName | None = None) -> Server | None:
        """A site's database, if it answers."""
        site = site or actor.site
        server = self.servers[site]
        if not server.up or site in self.destroyed:
            return None
        return server if self.reachable(actor.site, site) else None

    def server_at_work(self, actor: Actor) -> Server | None:
        """The own site's database for whoever works there: one in a life that nobody has verified does not answer."""
        server = self.server(actor)
        if server is None or not server.standing().waits_for_life:
            return server
        self.verify_life(actor)
        return None

    def verify_life(self, actor: Actor) -> None:
        """As `wiring.SiteAdapters` do for whoever meets such a life."""
        story: ports.Story[Any] = verify_life()
        answer = None
        with suppress(StopIteration):
            while True:
                answer = self.execute(actor, story.send(answer))

    def execute(self, actor: Actor, effect: ports.Effect) -> Any:
        """The result of an effect, or `BLOCKED`."""
        raise NotImplementedError

    def log(self, site: SiteName, topic: TopicName, partition: PartitionNumber) -> Log:
        """A site's partition; made when it is first touched."""
        log = self.logs.get((site, topic, partition))
        if log is None:
            log = self.logs[site, topic, partition] = Log(self.new_log_identity())
        return log

    def new_log_identity(self) -> str:
        """A name that no log had before."""
        self._logs_made += 1
        return f"log-{self._logs_made}"

    def _store(self, actor: Actor, server: Server, writes: Sequence[Write], result: Any, *, wait: bool = False) -> Any:
        if server.waiting and server.locked(writes):
            return BLOCKED
        waiting = server.write(writes, wait=wait)
        if result is DONE:
            result = ports.Done(server.position)
        if waiting is not None:
            actor.waiting = (waiting, result)
            return BLOCKED
        return result

    def write_background(self) -> None:
        """A server writes log of its own: checkpoints, vacuum. Positions grow without any of our rows."""
        server = self.servers[self.active]
        if server.up and not server.in_recovery:
            server.write((), wait=False)

    def replicate(self, flush: int, replay: int) -> None:
        """Ship some log from whoever is a primary to whoever follows it."""
        for site in SITES:
            standby = self.servers[site]
            source = self.servers[OTHER[site]]
            if not standby.in_recovery or not (standby.up and self.site_up[site]):
                continue
            if (
                source.up
                and self.site_up[source.site]
                and not source.in_recovery
                and self.link_up[source.site, site]
                and standby.follows(source)
            ):
                standby.receive(source, flush)
                if self.link_up[site, source.site]:
                    source.confirm(len(standby.log))
            standby.replay(replay)

    # What several effects read.

    def _lane(self, server: Server, lane: Lane) -> tuple[Epoch, Incarnation, int, int]:
        row: tuple[Epoch, Incarnation, int, int] = server.table("lanes").get(lane, (Epoch(0), Incarnation(0), 0, 0))
        return row

    def waiting(self, server: Server, feed: ports.Feed) -> int:
        """How many rows of a feed its consumer has not taken."""
        rows = (
            server.table("outbox").get(feed.lane, ())
            if feed.lane
            else server.table("instructions").get((feed.producer, feed.partition), ())
        )
        return len(rows) - int(server.tables["heads"][feed.consumer, feed.partition].vector[feed.producer])

    def left(self, server: Server) -> ports.Drained:
        """What is submitted and not applied, owed and not acknowledged, doubtful and not settled."""
        instructions = sum(self.waiting(server, feed) for feed in self.topology.feeds)
        emissions = doubts = 0
        for lane in self.topology.lanes:
            *claim, acknowledged, intended = self._lane(server, lane)
            emissions += len(server.table("outbox").get(lane, ())) - acknowledged
            if server.table("doubts").get((lane, intended)) == tuple(claim):  # else it is on its way
                doubts += intended - acknowledged
        return ports.Drained(instructions, emissions, doubts)

    def values_of(self, server: Server, partition: PartitionNumber, segment: Segment) -> list[bytes]:
        """The values of a segment's records: instruction rows, or emissions of the stage before."""
        values: list[bytes] = []
        for producer, first, count in segment.runs:
            inner = self.topology.inner.get(producer)
            if inner is None:
                rows = server.table("instructions").get((producer, partition), ())
                values += [value for _, value in rows[first - 1 : first - 1 + count]]
            else:
                rows = server.table("outbox").get(Lane(inner.channel, inner.partition, partition), ())
                values += rows[first - 1 : first - 1 + count]
        return values
