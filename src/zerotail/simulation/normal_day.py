"""The effects of the normal day: submit, produce, take a batch, ask the gate, send.

Each method is one transaction, one poll or one request: it happens as a whole or not at all. Nothing of the
protocol is decided here. The database checks what the real schema checks: the compare-and-set of a head,
that the epoch is the writer's own, and that the timeline is the one for which the epoch was opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zerotail import ports
from zerotail.core import intake
from zerotail.core.emission import Lane
from zerotail.core.epoch import Phase, works_at
from zerotail.core.head import Head
from zerotail.core.identity import (
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    PartitionNumber,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
)
from zerotail.core.poison import Decision, Poison, Remedy
from zerotail.core.receiver import LaneRecord
from zerotail.simulation.kafka import MOST_RECORD_BYTES
from zerotail.simulation.parts import (
    BLOCKED,
    DONE,
    NOT_LIVE,
    OTHER,
    OTHER_EPOCH,
    OTHER_HEAD,
    READ_ONLY,
    UNREACHABLE,
    Actor,
    DecidedNote,
    Parts,
)
from zerotail.simulation.postgres import EXTEND, NUMBERED, SET, Server, Write


class NormalDay(Parts):
    """Executes the effects of `flow/`."""

    compares_bytes = True
    """Whether the schema compares what is brought under a known identifier with what is there."""

    # Submission and producers.

    def _submit(self, actor: Actor, effect: ports.Submit) -> Any:
        server = self.server_at_work(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        known = server.table("ids").get(effect.id)
        if known is not None:
            serial, *stored = known
            self.drawn.pop(effect.id, None)
            if self.compares_bytes and stored != [effect.producer, effect.partition, effect.value]:
                return ports.Refused("its identifier belongs to another instruction")
            return ports.Submitted(server.standing(), serial, server.position)
        lineage = server.lineage
        if not works_at(lineage, actor.site, Timeline(server.timeline)):
            return NOT_LIVE
        if unfit := intake.find_unfit(
            len(effect.value), len(effect.id), effect.partition, self._partitions_of(effect.producer)
        ):
            return ports.Refused(unfit)
        writes: list[Write] = []
        if lineage.current.phase is Phase.DRAINING and self.way_in_is_open(actor.site):
            self.mark("drain healed")
            writes.append((SET, "lineage", "", lineage.changed(phase=Phase.LIVE)))
        elif lineage.current.phase is not Phase.LIVE:
            return NOT_LIVE
        key = (effect.producer, effect.partition)
        serial = Serial(len(server.table("instructions").get(key, ())) + 1)
        row: Write = (EXTEND, "instructions", key, ((effect.id, effect.value),))
        if self.given:
            drawn = self._draw_serial(server, effect)
            if drawn is None:
                return UNREACHABLE
            serial = drawn
            row = (NUMBERED, "instructions", key, (serial, (effect.id, effect.value)))
        writes += [
            row,
            (SET, "ids", effect.id, (serial, *key, effect.value)),
        ]
        result = ports.Submitted(server.standing(), serial, Lsn(server.position + 1))
        if server.waiting and server.locked(writes):
            return BLOCKED
        self.drawn.pop(effect.id, None)
        return self._store(actor, server, writes, result, wait=True)

    def _partitions_of(self, producer: ProducerNumber) -> set[PartitionNumber]:
        return {feed.partition for feed in self.topology.feeds if feed.producer == producer}

    def _draw_serial(self, server: Server, effect: ports.Submit) -> Serial | None:
        """The serial that a client has drawn for its instruction: the lowest one that nobody has. None: what it began
        is rolled back, and it comes again with the same one, perhaps after those that drew later.
        """
        key = (effect.producer, effect.partition)
        rows, beyond = server.table("instructions").get(key, ()), server.table("beyond a hole").get(key, {})
        known = self.drawn.get(effect.id)
        if known is not None and known[1] > len(rows) and known[1] not in beyond:
            return known[1]
        taken = {serial for one, serial in self.drawn.values() if (one.producer, one.partition) == key}
        serial = len(rows) + 1
        while serial in beyond or serial in taken:
            serial += 1
        self.drawn[effect.id] = effect, Serial(serial)
        if serial > len(rows) + 1:
            self.mark("a serial is drawn beyond a hole")
        return None if self.moment % 3 == 0 else Serial(serial)

    def way_in_is_open(self, site: SiteName) -> bool:
        """Whether nobody who lives drains this site."""
        holder = self.drained_by.get(site)
        return holder is None or not holder.lives

    def _read_feed(self, actor: Actor, effect: ports.ReadFeed) -> Any:
        server = self.server_at_work(actor)
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
        stopped = self._head_read(server, (feed.consumer, feed.partition), head).stopped is not None
        return ports.Fed(server.standing(), server.position, vector, request[0], Serial(after + 1), values, stopped)

    def _send_records(self, actor: Actor, effect: ports.SendRecords) -> Any:
        if not self.kafka_up[actor.site]:
            return UNREACHABLE
        values = effect.records.values
        fits = next((at for at, value in enumerate(values) if len(value) > MOST_RECORD_BYTES), len(values))
        self.log(actor.site, effect.topic, effect.partition).append(effect.records, fits)
        return DONE if fits == len(values) else ports.TooLarge(fits, "the record is too large")

    def _poll_records(self, actor: Actor, effect: ports.PollRecords) -> Any:
        if not self.kafka_up[actor.site]:
            return UNREACHABLE
        found = self.log(actor.site, effect.topic, effect.partition).read(
            effect.hint, effect.limit, effect.installation
        )
        if found is None:
            return ports.HintLost()
        return ports.Polled(found[0], found[1], self.time)

    def _read_log_end(self, actor: Actor, effect: ports.ReadLogEnd) -> Any:
        if not self.kafka_up[actor.site]:
            return UNREACHABLE
        return self.log(actor.site, effect.topic, effect.partition).log_end(effect.installation)

    # Stages.

    def _read_head(self, actor: Actor, effect: ports.ReadHead) -> Any:
        server = self.server_at_work(actor)
        if server is None:
            return UNREACHABLE
        place = (effect.stage, effect.partition)
        return self._head_read(server, place, server.tables["heads"][place])

    def _head_read(self, server: Server, place: tuple[StageName, PartitionNumber], head: Head) -> ports.HeadRead:
        """A head with what was decided about records that it has not passed yet."""
        waiting = {
            (key[2], key[3]): row
            for key, row in server.table("poison").items()
            if key[:2] == place and key[3] > head.vector[key[2]]
        }
        decisions = {name: row for name, row in waiting.items() if isinstance(row, Decision)}
        stopped = next((row for row in waiting.values() if isinstance(row, Poison)), None)
        return ports.HeadRead(server.standing(), head, decisions, stopped)

    def _record_poison(self, actor: Actor, effect: ports.RecordPoison) -> Any:
        server = self.server_at_work(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        place = (effect.stage, effect.partition)
        if server.waiting and server.locked([(SET, "heads", place, None)]):
            return BLOCKED
        if server.lineage.current.timeline != server.timeline:
            return OTHER_EPOCH
        if server.tables["heads"][place].token != effect.expected:
            return OTHER_HEAD
        poison = effect.poison
        key = (*place, poison.producer, poison.serial)
        known = server.table("poison").get(key)
        if isinstance(known, Decision) and (known.remedy, known.digest) == (Remedy.SKIP, poison.digest):
            return DONE
        return self._store(actor, server, [(SET, "poison", key, poison)], DONE, wait=True)

    def decide_poison(
        self, actor: Actor, place: tuple[StageName, PartitionNumber], seen: Poison, decision: Decision | None
    ) -> Any:
        """An operator's word on the record that was seen where a partition stopped; None is to try again."""
        server = self.server_at_work(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        key = (*place, seen.producer, seen.serial)
        known = server.table("poison").get(key)
        if not isinstance(known, Poison) or known.digest != seen.digest:
            return ports.Refused("another record stands there, or it is decided already")
        if seen.serial <= server.tables["heads"][place].vector[seen.producer]:
            return ports.Refused("the record was taken meanwhile")
        stored = self._store(actor, server, [(SET, "poison", key, decision)], DONE)
        if isinstance(stored, ports.Done):
            self.decided.append(DecidedNote(self.moment, *key, seen.digest, decision))
        return stored

    def _claim_head(self, actor: Actor, effect: ports.ClaimHead) -> Any:
        server = self.server_at_work(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        if not works_at(server.lineage, actor.site, Timeline(server.timeline)):
            return NOT_LIVE
        place = (effect.stage, effect.partition)
        head = server.tables["heads"][place].claimed()
        writes: list[Write] = [(SET, "heads", place, head)]
        return self._store(actor, server, writes, self._head_read(server, place, head), wait=False)

    def _load_state(self, actor: Actor, effect: ports.LoadState) -> Any:
        server = self.server_at_work(actor)
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
        server = self.server_at_work(actor)
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
        server = self.server_at_work(actor)
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

    def _read_end(self, actor: Actor, _: ports.ReadEnd) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        return ports.EndRead(server.standing().asker, server.position)

    def _read_position(self, actor: Actor, _: ports.ReadPosition) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        known = server.table("life").get("", "")
        nonce = known if known == server.name_of_life else ""
        return ports.PositionRead(server.standing(), server.position, server.starts, nonce)

    def _begin_life(self, actor: Actor, effect: ports.BeginLife) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery or server.lineage.current.epoch != effect.epoch or server.starts != effect.start:
            return OTHER_EPOCH
        return self._store(actor, server, server.begin_life(verified=effect.verified), DONE)

    def _end_life(self, actor: Actor, effect: ports.EndLife) -> Any:
        server = self.server(actor)
        if server is None:
            return UNREACHABLE
        if server.in_recovery or not effect.nonce or server.life != effect.nonce:
            return ports.Refused("another life is in force")
        return self._store(actor, server, [(SET, "life", "verified", "")], DONE)

    def _claim_lane(self, actor: Actor, effect: ports.ClaimLane) -> Any:
        server = self.server_at_work(actor)
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
        server = self.server_at_work(actor)
        if server is None:
            return UNREACHABLE
        actor.read_at = self.moment
        outbox = server.table("outbox").get(effect.lane, ())
        _, incarnation, acknowledged, intended = self._lane(server, effect.lane)
        record = LaneRecord(EmissionNumber(len(outbox)), EmissionNumber(acknowledged), EmissionNumber(intended))
        values = () if effect.after is None else outbox[effect.after : effect.after + effect.limit]
        return ports.LaneRead(server.standing(), server.position, incarnation, record, values)

    def _change_lane(
        self, actor: Actor, lane: Lane, epoch: Epoch, incarnation: Incarnation, change: Callable[..., Any]
    ) -> Any:
        server = self.server_at_work(actor)
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
        return self._store(actor, server, [(SET, "lanes", lane, (epoch, incarnation, acknowledged, intended))], DONE)

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
        server = self.server_at_work(actor)
        if server is None:
            return UNREACHABLE
        row = self._lane(server, effect.lane)
        if server.in_recovery or row[:2] != (effect.epoch, effect.incarnation):
            return OTHER_EPOCH
        numbers = range(effect.first, effect.last + 1)
        self.witness.doubts(self.moment, effect)
        return self._store(actor, server, [(SET, "doubts", (effect.lane, number), row[:2]) for number in numbers], DONE)

    def _settle_doubts(self, actor: Actor, effect: ports.SettleDoubts) -> Any:
        server = self.server_at_work(actor)
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
        return self.receivers[effect.lane].claimed(self.moment, actor, effect)

    def _send_emissions(self, actor: Actor, effect: ports.SendEmissions) -> Any:
        receiver = self.receivers[effect.lane]
        if not self.outside_up[actor.site]:
            return receiver.unreached(actor, effect)
        self.witness.released(actor.read_at, actor.site, effect)
        return receiver.arrived(self.moment, actor, effect)
