"""The simulated world: executes the effects of the protocol on two sites, their links and the outside.

Every method below that takes an effect is one transaction, one request or one command of an operator: it
happens as a whole or not at all. What may go wrong around it (a lost request, a lost answer, a request that
arrives late, a crash before or after) is the business of `schedule.py`; here are the vices of the parts
themselves.

Nothing of the protocol is decided here. The database checks what the real schema checks: the compare-and-set
of a head, that the epoch is the writer's own, and that the timeline is the one the epoch was opened for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zerotail import ports
from zerotail.core.emission import Lane
from zerotail.core.epoch import Cut, Durability, EpochRow, HeadCut, Lineage, Phase, works_at
from zerotail.core.head import Segment, first_head
from zerotail.core.identity import (
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    PartitionNumber,
    Position,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    TopicName,
    epoch_of,
)
from zerotail.core.receiver import DoubtPolicy, LaneRecord, ReceiverClass
from zerotail.failover.takeover import Pipeline
from zerotail.flow.stage import Stage
from zerotail.simulation.kafka import Log
from zerotail.simulation.outside import Attempt, ClaimNoted, Receiver
from zerotail.simulation.postgres import EXTEND, SET, Server, Waiting, Write

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

    @property
    def pipeline(self) -> Pipeline:
        """The part that a takeover has to know."""
        return Pipeline(self.stages, self.producers, self.lanes)


class Actor:
    """Whoever yields an effect: at which site, and what its session waits for."""

    __slots__ = ("read_at", "site", "waiting")

    def __init__(self, site: SiteName, read_at: int = 0) -> None:
        self.site = site
        self.read_at = read_at
        """When it last read what it owes: a release is as old as that."""
        self.waiting: tuple[Waiting, Any] | None = None


class World:
    """Two sites and the outside."""

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
        self.receivers = {
            lane: Receiver(lane, receiver, self.outside) for lane, receiver in topology.lanes.items()
        }
        self.kept: list[tuple[SiteName, Segment, StageName, PartitionNumber]] = []
        self.diverged: list[tuple[SiteName, Segment, StageName, PartitionNumber]] = []
        """Segments that only a replaced copy had; those that were kept for audit are in `kept`."""
        self.destroyed: set[SiteName] = set()
        self.active: SiteName = EAST
        """In the operators' notebook: the site that went on last."""
        self.out: SiteName | None = None
        """In the operators' notebook: the site that was declared out and has not been brought back."""
        self.power_off: Callable[[SiteName], None] = lambda _: None
        self.witness: Witness = Witness()
        self._logs_made = 0
        self._stages = {(stage.name, stage.partition): stage for stage in topology.stages}
        self._handlers: dict[type[ports.Effect], Callable[[Actor, Any], Any]] = {
            ports.Submit: self._submit,
            ports.ReadFeed: self._read_feed,
            ports.SendRecords: self._send_records,
            ports.PollRecords: self._poll_records,
            ports.ReadLogEnd: self._read_log_end,
            ports.ReadHead: self._read_head,
            ports.LoadState: self._load_state,
            ports.Commit: self._commit,
            ports.RequestAgain: self._request_again,
            ports.AskGate: self._ask_gate,
            ports.ClaimLane: self._claim_lane,
            ports.ReadLane: self._read_lane,
            ports.RecordIntent: self._record_intent,
            ports.RecordAcknowledged: self._record_acknowledged,
            ports.RecordDoubts: self._record_doubts,
            ports.SettleDoubts: self._settle_doubts,
            ports.ClaimAtReceiver: self._claim_at_receiver,
            ports.SendEmissions: self._send_emissions,
            ports.ObserveSite: self._observe_site,
            ports.FenceSite: self._fence_site,
            ports.Promote: self._promote,
            ports.OpenEpoch: self._open_epoch,
            ports.ChangeEpoch: self._change_epoch,
            ports.StoreStart: self._store_start,
            ports.ReadJournal: self._read_journal,
            ports.FindPlace: self._find_place,
            ports.RecordStep: self._record_step,
            ports.ObserveDrained: self._observe_drained,
            ports.ShutDown: self._shut_down,
            ports.KeepTail: self._keep_tail,
            ports.CopyDatabase: self._copy_database,
            ports.RecordRejoined: self._record_rejoined,
        }
        self._begin()

    def _begin(self) -> None:
        """The first epoch at east, and west as its standby."""
        epoch = epoch_of(1, NUMBER[EAST])
        row = EpochRow(epoch, EAST, Timeline(1), Durability.GATED, Phase.LIVE, Cut())
        writes: list[Write] = [(SET, "lineage", "", Lineage((row,)))]
        writes += [
            (SET, "heads", key, first_head(epoch, self.topology.producers[stage.name]))
            for key, stage in self._stages.items()
        ]
        self.servers[EAST].write(writes, wait=False)
        self.servers[EAST].names = self.synchronous
        self.servers[WEST].copy_from(self.servers[EAST])
        self.witness.opened(self.moment, row)

    def execute(self, actor: Actor, effect: ports.Effect) -> Any:
        """The result of an effect, or `BLOCKED`."""
        self.moment += 1
        if actor.waiting is not None:
            waiting, result = actor.waiting
            if not waiting.finished:
                return BLOCKED
            actor.waiting = None
            return result if waiting.succeeded else INDEFINITE
        return self._handlers[type(effect)](actor, effect)

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
        return server if server.up and self.reachable(actor.site, site) else None

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

    def _store(
        self, actor: Actor, server: Server, writes: Sequence[Write], result: Any, *, wait: bool = False
    ) -> Any:
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

    # Submission and producers.

    def _submit(self, actor: Actor, effect: ports.Submit) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        serial = server.table("ids").get(effect.id)
        if serial is not None:
            return ports.Submitted(server.standing(), serial, server.position)
        lineage = server.lineage
        if not works_at(lineage, actor.site, Timeline(server.timeline)):
            return NOT_LIVE
        if lineage.current.phase is not Phase.LIVE:
            return NOT_LIVE
        key = (effect.producer, effect.partition)
        serial = Serial(len(server.table("instructions").get(key, ())) + 1)
        writes: list[Write] = [
            (EXTEND, "instructions", key, ((effect.id, effect.value),)),
            (SET, "ids", effect.id, serial),
        ]
        result = ports.Submitted(server.standing(), serial, Lsn(server.position + 1))
        return self._store(actor, server, writes, result, wait=True)

    def _read_feed(self, actor: Actor, effect: ports.ReadFeed) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        feed = effect.feed
        tables = server.tables
        key = (feed.producer, feed.partition)
        head = tables["heads"][feed.consumer, feed.partition]
        vector = head.vector[feed.producer]
        after = vector if effect.after is None else effect.after
        if feed.lane is None:
            rows = server.table("instructions").get(key, ())
            values = [value for _, value in rows[after : after + effect.limit]]
        else:
            values = server.table("outbox").get(feed.lane, ())[after : after + effect.limit]
        request = server.table("requests").get(key, (0, 0))
        return ports.Fed(server.standing(), server.position, vector, request[0], Serial(after + 1), values)

    def _send_records(self, actor: Actor, effect: ports.SendRecords) -> Any:
        if not self.kafka_up[actor.site]:
            return UNREACHABLE
        self.log(actor.site, effect.topic, effect.partition).append(effect.records)
        return DONE

    def _poll_records(self, actor: Actor, effect: ports.PollRecords) -> Any:
        if not self.kafka_up[actor.site]:
            return UNREACHABLE
        found = self.log(actor.site, effect.topic, effect.partition).read(effect.hint, effect.limit)
        if found is None:
            return ports.HintLost()
        return ports.Polled(found[0], found[1], self.time)

    def _read_log_end(self, actor: Actor, effect: ports.ReadLogEnd) -> Any:
        if not self.kafka_up[actor.site]:
            return UNREACHABLE
        return self.log(actor.site, effect.topic, effect.partition).log_end()

    # Stages.

    def _read_head(self, actor: Actor, effect: ports.ReadHead) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        return ports.HeadRead(server.standing(), server.tables["heads"][effect.stage, effect.partition])

    def _load_state(self, actor: Actor, effect: ports.LoadState) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        state = server.table("state")
        found = {}
        for key in effect.keys:
            value = state.get((effect.stage, effect.partition, key))
            if value is not None:
                found[key] = value
        return ports.StateLoaded(found)

    def _commit(self, actor: Actor, effect: ports.Commit) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        place = (effect.stage, effect.partition)
        writes: list[Write] = [(SET, "heads", place, effect.head)]
        if server.waiting and server.locked(writes):
            return BLOCKED
        if server.timeline != effect.timeline:
            return OTHER_EPOCH
        if server.tables["heads"][place].token != effect.expected:
            return OTHER_HEAD
        writes.append((EXTEND, "segments", place, (effect.segment,)))
        writes += [(SET, "state", (*place, key), value) for key, value in effect.state.items()]
        for (channel, target), (first, values) in effect.outbox.items():
            lane = Lane(channel, effect.partition, target)
            if first != len(server.table("outbox").get(lane, ())) + 1:
                return ports.Refused("the number is taken")
            writes.append((EXTEND, "outbox", lane, values))
        return self._store(actor, server, writes, DONE, wait=True)

    def _request_again(self, actor: Actor, effect: ports.RequestAgain) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery or server.lineage.current.epoch != effect.epoch:
            return OTHER_EPOCH
        requests = server.table("requests")
        writes: list[Write] = []
        for producer, serial in effect.gaps.items():
            number, wanted = requests.get((producer, effect.partition), (0, 0))
            if wanted != serial:
                writes.append((SET, "requests", (producer, effect.partition), (number + 1, serial)))
        return self._store(actor, server, writes, DONE) if writes else DONE

    # The gate and the outside.

    def _ask_gate(self, actor: Actor, _: ports.AskGate) -> Any:
        server = self.server(actor, OTHER[actor.site])
        return UNREACHABLE if server is None else server.gate_answer()

    def _lane(self, server: Server, lane: Lane) -> tuple[Epoch, Incarnation, int, int]:
        row: tuple[Epoch, Incarnation, int, int] = server.table("lanes").get(
            lane, (Epoch(0), Incarnation(0), 0, 0)
        )
        return row

    def _claim_lane(self, actor: Actor, effect: ports.ClaimLane) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        if not works_at(server.lineage, actor.site, Timeline(server.timeline)):
            return NOT_LIVE
        _, incarnation, acknowledged, intended = self._lane(server, effect.lane)
        incarnation = Incarnation(incarnation + 1)
        standing = server.standing()
        row = (standing.epoch, incarnation, acknowledged, intended)
        result = ports.LaneClaimed(standing, incarnation, Lsn(server.position + 1))
        return self._store(actor, server, [(SET, "lanes", effect.lane, row)], result)

    def _read_lane(self, actor: Actor, effect: ports.ReadLane) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        actor.read_at = self.moment
        outbox = server.table("outbox").get(effect.lane, ())
        _, incarnation, acknowledged, intended = self._lane(server, effect.lane)
        record = LaneRecord(
            EmissionNumber(len(outbox)), EmissionNumber(acknowledged), EmissionNumber(intended)
        )
        values = () if effect.after is None else outbox[effect.after : effect.after + effect.limit]
        return ports.LaneRead(server.standing(), server.position, incarnation, record, values)

    def _change_lane(
        self, actor: Actor, lane: Lane, epoch: Epoch, incarnation: Incarnation, change: Callable[..., Any]
    ) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        if not works_at(server.lineage, actor.site, Timeline(server.timeline)):
            return OTHER_EPOCH
        row = self._lane(server, lane)
        if row[:2] != (epoch, incarnation):
            return OTHER_EPOCH
        acknowledged, intended = change(row[2], row[3])
        return self._store(
            actor, server, [(SET, "lanes", lane, (epoch, incarnation, acknowledged, intended))], DONE
        )

    def _record_intent(self, actor: Actor, effect: ports.RecordIntent) -> Any:
        return self._change_lane(
            actor,
            effect.lane,
            effect.epoch,
            effect.incarnation,
            lambda acknowledged, intended: (
                max(acknowledged, effect.acknowledged),
                max(intended, effect.number),
            ),
        )

    def _record_acknowledged(self, actor: Actor, effect: ports.RecordAcknowledged) -> Any:
        return self._change_lane(
            actor,
            effect.lane,
            effect.epoch,
            effect.incarnation,
            lambda acknowledged, intended: (
                max(acknowledged, effect.number),
                max(intended, effect.number),
            ),
        )

    def _record_doubts(self, actor: Actor, effect: ports.RecordDoubts) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        row = self._lane(server, effect.lane)
        if server.in_recovery or row[:2] != (effect.epoch, effect.incarnation):
            return OTHER_EPOCH
        numbers = range(effect.first, effect.last + 1)
        self.witness.doubts(self.moment, effect)
        return self._store(
            actor, server, [(SET, "doubts", (effect.lane, number), row[:2]) for number in numbers], DONE
        )

    def _settle_doubts(self, actor: Actor, effect: ports.SettleDoubts) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        epoch, incarnation, _, intended = self._lane(server, effect.lane)
        listed_by = server.table("doubts").get((effect.lane, intended))
        if server.in_recovery or listed_by != (epoch, incarnation):
            return ports.Refused("the doubt is not the current sender's")
        row = (epoch, incarnation, effect.received, effect.received)
        return self._store(actor, server, [(SET, "lanes", effect.lane, row)], DONE)

    def _claim_at_receiver(self, actor: Actor, effect: ports.ClaimAtReceiver) -> Any:
        if not self.outside_up[actor.site]:
            return UNREACHABLE
        return self.receivers[effect.lane].claimed(self.moment, actor.site, effect)

    def _send_emissions(self, actor: Actor, effect: ports.SendEmissions) -> Any:
        if not self.outside_up[actor.site]:
            return UNREACHABLE
        self.witness.released(actor.read_at, actor.site, effect)
        return self.receivers[effect.lane].arrived(self.moment, actor.site, effect)

    # The bad day.

    def _observe_site(self, actor: Actor, effect: ports.ObserveSite) -> Any:
        server = self.server(actor, effect.site)
        if server is None or effect.site in self.destroyed:
            return UNREACHABLE
        return ports.SiteObserved(server.standing(), server.position)

    def _fence_site(self, actor: Actor, effect: ports.FenceSite) -> Any:
        if not self.fence or not self.reachable(actor.site, effect.site):
            return UNREACHABLE
        self.power_off(effect.site)
        return DONE

    def _promote(self, actor: Actor, effect: ports.Promote) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            server.promote()
            self.witness.promoted(self.moment, effect.site)
        return DONE

    def _open_epoch(self, actor: Actor, effect: ports.OpenEpoch) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        lineage = server.lineage
        if lineage.current.epoch != effect.expected:
            return OTHER_EPOCH
        heads = server.tables["heads"]
        row = EpochRow(
            effect.epoch,
            effect.site,
            Timeline(server.timeline),
            effect.durability,
            Phase.OPENED,
            self._cut(server),
            effect.cause,
            effect.operator,
        )
        writes: list[Write] = [(SET, "lineage", "", lineage.opened(row))]
        writes += [(SET, "heads", place, head.in_epoch(effect.epoch)) for place, head in heads.items()]
        result = self._store(actor, server, writes, DONE)
        if result is not BLOCKED:
            self.witness.opened(self.moment, row)
            if effect.cause == "exposure":
                self.out = OTHER[effect.site]
            elif effect.cause != "timeline":
                self.active = effect.site
        return result

    def _cut(self, server: Server) -> Cut:
        serials: dict[tuple[ProducerNumber, PartitionNumber], Serial] = {}
        for feed in self.topology.feeds:
            key = (feed.producer, feed.partition)
            rows = server.table("outbox").get(feed.lane, ()) if feed.lane else None
            if rows is None:
                rows = server.table("instructions").get(key, ())
            serials[key] = Serial(len(rows))
        heads = tuple(
            HeadCut(stage, partition, head.segment, head.next_position, head.chain)
            for (stage, partition), head in server.tables["heads"].items()
        )
        return Cut(serials, heads)

    def _change_epoch(self, actor: Actor, effect: ports.ChangeEpoch) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        lineage = server.lineage
        if lineage.current.epoch != effect.epoch or lineage.current.timeline != server.timeline:
            return OTHER_EPOCH
        changed = lineage.changed(phase=effect.phase, durability=effect.durability)
        result = self._store(actor, server, [(SET, "lineage", "", changed)], DONE)
        if result is BLOCKED:
            return result
        if effect.durability is Durability.GATED:
            server.names = self.synchronous
            if self.out == OTHER[effect.site]:
                self.out = None
            self.witness.gated(self.moment, changed.current)
        if effect.phase is Phase.LIVE:
            self.witness.live(self.moment, lineage.current)
        return result

    def _store_start(self, actor: Actor, effect: ports.StoreStart) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        place = (effect.stage, effect.partition)
        head = server.tables["heads"][place]
        if server.in_recovery or head.epoch != effect.epoch:
            return OTHER_EPOCH
        moved = type(head)(
            head.epoch,
            head.segment,
            head.next_position,
            head.vector,
            head.numbers,
            head.chain,
            head.output_chain,
            head.decided_at,
            effect.hint,
        )
        return self._store(actor, server, [(SET, "heads", place, moved)], DONE)

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

    def _read_journal(self, actor: Actor, effect: ports.ReadJournal) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        place = (effect.stage, effect.partition)
        segments = server.table("segments").get(place, ())[effect.after : effect.after + effect.limit]
        return self._journal(server, place, segments, Position(0))

    def _journal(
        self,
        server: Server,
        place: tuple[StageName, PartitionNumber],
        segments: Sequence[Segment],
        first_position: Position,
    ) -> ports.JournalRead:
        values = [self.values_of(server, place[1], segment) for segment in segments]
        head = server.tables["heads"][place]
        return ports.JournalRead(server.standing(), head, segments, values, first_position)

    def _find_place(self, actor: Actor, effect: ports.FindPlace) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        place = (effect.stage, effect.partition)
        segments: Sequence[Segment] = server.table("segments").get(place, ())
        index, position = 0, 0
        if effect.serial:
            index, position = len(segments), server.tables["heads"][place].next_position
            for number in range(len(segments) - 1, -1, -1):
                found = _position_in(segments[number], effect.producer, effect.serial)
                if found is not None:
                    index, position = number, found + 1
                    break
        segments = segments[index : index + effect.limit]
        if segments and position == segments[0].first_position + len(segments[0].digests):
            segments = segments[1:]
        return self._journal(server, place, segments, Position(position))

    def _record_step(self, actor: Actor, effect: ports.RecordStep) -> Any:
        return DONE if self.reachable(actor.site, effect.site) else UNREACHABLE

    def left(self, server: Server) -> ports.Drained:
        """What is submitted and not applied, owed and not acknowledged, doubtful and not settled."""
        heads = server.tables["heads"]
        instructions = 0
        for feed in self.topology.feeds:
            rows = (
                server.table("outbox").get(feed.lane, ())
                if feed.lane
                else server.table("instructions").get((feed.producer, feed.partition), ())
            )
            instructions += len(rows) - heads[feed.consumer, feed.partition].vector[feed.producer]
        emissions = doubts = 0
        for lane in self.topology.lanes:
            _, _, acknowledged, intended = self._lane(server, lane)
            emissions += len(server.table("outbox").get(lane, ())) - acknowledged
            doubts += intended - acknowledged
        return ports.Drained(instructions, emissions, doubts)

    def _observe_drained(self, actor: Actor, effect: ports.ObserveDrained) -> Any:
        server = self.server(actor, effect.site)
        return UNREACHABLE if server is None else self.left(server)

    def _shut_down(self, actor: Actor, effect: ports.ShutDown) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        standby = self.servers[OTHER[effect.site]]
        if standby.up and standby.follows(server) and self.link_up[effect.site, standby.site]:
            standby.receive(server, len(server.log))
        server.crash()
        return ports.Done(server.position)

    def _keep_tail(self, actor: Actor, effect: ports.KeepTail) -> Any:
        server = self.server(actor, effect.site)
        source = self.server(actor, effect.source)
        if server is None or source is None:
            return UNREACHABLE
        self.kept += _own_segments(server, source)
        return ports.Done(server.position)

    def _copy_database(self, actor: Actor, effect: ports.CopyDatabase) -> Any:
        source = self.server(actor, effect.source)
        if source is None or not self.reachable(actor.site, effect.site):
            return UNREACHABLE
        if source.in_recovery:
            return READ_ONLY
        replaced = self.servers[effect.site]
        found = (replaced.lineage.current.epoch, replaced.position)
        if effect.replaced is not None and found != effect.replaced:
            return ports.Refused("the database was written to meanwhile")
        if effect.site not in self.destroyed:
            self.diverged += _own_segments(replaced, source)
        replaced.copy_from(source)
        self.destroyed.discard(effect.site)
        return DONE

    def _record_rejoined(self, actor: Actor, effect: ports.RecordRejoined) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        if server.in_recovery or server.lineage.current.epoch != effect.epoch:
            return OTHER_EPOCH
        return self._store(actor, server, [(SET, "rejoined", effect.rejoined, effect.epoch)], DONE)


def _own_segments(
    server: Server, source: Server
) -> list[tuple[SiteName, Segment, StageName, PartitionNumber]]:
    """The segments of a log that another one does not have."""
    return [
        (server.site, segment, *key)
        for entry in server.log[server.common_prefix(source) :]
        for _, table, key, value in entry.writes
        if table == "segments"
        for segment in value
    ]


def _position_in(segment: Segment, producer: ProducerNumber, serial: Serial) -> int | None:
    position: int = segment.first_position
    for of, first, count in segment.runs:
        if of == producer and first <= serial < first + count:
            return position + serial - first
        position += count
    return None


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
