"""The effects of the bad day: look, fence, promote, open an epoch, replay, copy.

As on the normal day, each is one transaction or one command, and nothing of the protocol is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zerotail import ports
from zerotail.core import completeness
from zerotail.core.completeness import Surplus
from zerotail.core.emission import Lane
from zerotail.core.epoch import Cut, Durability, EpochRow, HeadCut, Phase
from zerotail.core.head import Segment
from zerotail.core.identity import (
    Lsn,
    PartitionNumber,
    Position,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
)
from zerotail.simulation.parts import (
    BLOCKED,
    DONE,
    OTHER,
    OTHER_EPOCH,
    READ_ONLY,
    UNREACHABLE,
    Actor,
    Parts,
)
from zerotail.simulation.postgres import SET, Server, Write


class BadDay(Parts):
    """Executes the effects of `failover/`."""

    def _observe_site(self, actor: Actor, effect: ports.ObserveSite) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        if effect.site == actor.site:
            actor.looked_at = server.position
        receives = not server.in_recovery or server.follows(self.servers[OTHER[effect.site]])
        return ports.SiteObserved(server.standing(), server.position, receives)

    def _compare_copies(self, actor: Actor, effect: ports.CompareCopies) -> Any:
        copy, there = self.server(actor, effect.site), self.server(actor, effect.active)
        if copy is None or there is None:
            return UNREACHABLE
        unknown = completeness.first_unknown(copy.lineage, there.lineage)
        survived = self._cut(there) if unknown is None else unknown.cut
        held = self._cut(copy)
        boxes, known = copy.table("outbox"), there.table("outbox")
        surplus = Surplus(
            copy.position,
            None if there.went_on is None else Lsn(there.went_on),
            there.position,
            not copy.in_recovery or copy.replayed == len(copy.log),
            completeness.same_way(copy.lineage, there.lineage, Timeline(there.timeline)),
            messages=sum(max(0, len(boxes.get(lane, ())) - len(known.get(lane, ()))) for lane in self.topology.lanes),
            instructions=completeness.count_instructions(held, survived, self.topology.inner)
            + self._beyond_holes(copy, there),
            segments=completeness.count_segments(held, survived),
            epochs=completeness.count_epochs(copy.lineage, there.lineage),
            claims=sum(self._ahead(copy, there, lane) for lane in self.topology.lanes),
        )
        return ports.CopiesCompared(surplus)

    def _beyond_holes(self, copy: Server, there: Server) -> int:
        """How many rows above a hole only the copy has."""
        rows, known = there.table("instructions"), there.table("beyond a hole")
        return sum(
            row not in known.get(key, {}).values() and row not in rows.get(key, ())
            for key, beyond in copy.table("beyond a hole").items()
            for row in beyond.values()
        )

    def _ahead(self, copy: Server, there: Server, lane: Lane) -> bool:
        said, known = self._lane(copy, lane), self._lane(there, lane)
        return said[:2] > known[:2] or said[3] > known[3]

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
            held = len(server.log)
            if lacking := self.lagging.get(effect.site, 0):
                held = max(1, min(held, actor.looked_at) - lacking)
            if held < effect.at_least:
                self.mark("another standby answered than the one that was looked at")
                return ports.Refused("it holds less of the log than the one that was looked at")
            server.promote(held)
            self.witness.promoted(self.moment, effect.site)
        return DONE

    def _stop_waiting(self, actor: Actor, effect: ports.StopWaiting) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        server.empty_names()
        return DONE

    def _open_epoch(self, actor: Actor, effect: ports.OpenEpoch) -> Any:
        server = self.server(actor, effect.site)
        if server is None:
            return UNREACHABLE
        if server.in_recovery:
            return READ_ONLY
        lineage = server.lineage
        if lineage.current.epoch != effect.expected or effect.timeline not in (None, server.timeline):
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
        writes += server.begin_life()
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
        if effect.phase is Phase.DRAINING:
            self.drained_by[effect.site] = actor
        if effect.phase is Phase.LIVE:
            self.drained_by.pop(effect.site, None)
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


def _own_segments(server: Server, source: Server) -> list[tuple[SiteName, Segment, StageName, PartitionNumber]]:
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
