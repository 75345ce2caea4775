"""The quick judge: after every run, the rules of the verdict applied to the simulated world itself.

It looks at three things only: what the receivers got, what the clients were told, and the databases at the
end. The reference is a one-pass replay of the final journal. Its rule numbers are those of the checker,
which judges the full history of a sample of runs, and of every run that fails here.

Rules that need the moment and not only the end (was it really durable when it left?) are checked by `Watch`
while the run goes on, with the world's own knowledge, not with the evidence that the sender carries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from zerotail import ports
from zerotail.core.emission import Lane
from zerotail.core.epoch import Durability, EpochRow, topic_at
from zerotail.core.head import Segment, first_head
from zerotail.core.identity import Epoch, SiteName
from zerotail.core.receiver import ReceiverClass
from zerotail.core.record import digest_of
from zerotail.errors import Broken
from zerotail.failover.replay import Replay
from zerotail.simulation.kafka import THEIRS
from zerotail.simulation.outside import Attempt, Receiver
from zerotail.simulation.parts import OTHER, Witness
from zerotail.simulation.postgres import EXTEND, Server
from zerotail.simulation.remedies import judge_decisions
from zerotail.simulation.run import Run
from zerotail.simulation.violation import Violation
from zerotail.simulation.world import World


class Watch(Witness):
    """Checks what must hold at the moment it happens."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.violations: list[Violation] = []
        self.sites: dict[Epoch, SiteName] = {row.epoch: row.site for row in world.servers[world.active].lineage.rows}
        self.rows: list[tuple[int, EpochRow]] = [(0, row) for row in world.servers[world.active].lineage.rows]
        self.exposed: set[Epoch] = set()
        self.doubted: set[tuple[Lane, int]] = set()
        self.listed: list[tuple[int, ports.RecordDoubts]] = []
        self.gatings: list[tuple[int, EpochRow]] = []
        self.releases: list[tuple[int, SiteName, ports.SendEmissions]] = []
        self._live: list[tuple[object, ...]] = [(row.epoch, row.site, row.timeline, row.cut) for _, row in self.rows]
        self._gated_at: dict[Epoch, int] = {}
        self._listings: list[ports.RecordDoubts] = []
        self.keep = False
        """Whether releases are kept for the full checker."""

    def opened(self, time: int, row: EpochRow) -> None:
        """An exposed epoch counts from its opening, since receivers may meet it at once."""
        if row.durability is Durability.EXPOSED:
            self.exposed.add(row.epoch)
            self.live(time, row)

    def live(self, time: int, row: EpochRow) -> None:
        """S7: no epoch is at work twice, or at two sites. One lost before it was live is nobody's."""
        name = (row.epoch, row.site, row.timeline, row.cut)
        if name in self._live:
            return
        if row.epoch in self.sites:
            self._bad("S7", f"epoch {row.epoch} is opened again, by {row.site}")
        self._live.append(name)
        self.sites[row.epoch] = row.site
        self.rows.append((time, row))

    def gated(self, time: int, row: EpochRow) -> None:
        """Remember when an epoch went back to gated."""
        self.gatings.append((time, row))
        self._gated_at.setdefault(row.epoch, time)

    def released(self, time: int, site: SiteName, effect: ports.SendEmissions) -> None:
        """S8: the other site holds it. S18: or the epoch said that it may go without."""
        if self.keep:
            self.releases.append((time, site, effect))
        if effect.release.answer is None:
            if effect.epoch not in self.exposed or time > self._gated_at.get(effect.epoch, time):
                self._bad("S18", f"{site} sent without the gate in epoch {effect.epoch}, which is not exposed")
            return
        other = self.world.servers[OTHER[site]]
        if other.site in self.world.destroyed:
            return
        last = effect.first + len(effect.values) - 1
        held = _flushed_outbox(other, effect.lane)
        if held[effect.first - 1 : last] != list(effect.values):
            self._bad(
                "S8",
                f"{site} sent {effect.lane.channel} {effect.first}..{last}; {other.site} does not hold it",
            )

    def doubts(self, time: int, effect: ports.RecordDoubts) -> None:
        """Remember what was listed; listing it again changes nothing."""
        if effect not in self._listings:
            self._listings.append(effect)
            self.listed.append((time, effect))
        self.doubted.update((effect.lane, number) for number in range(effect.first, effect.last + 1))

    def acknowledged(self, site: SiteName, identifier: str, durability: str) -> None:
        """E16: at both sites, when that was said; and never at one only to a client that does not take that."""
        other = self.world.servers[OTHER[site]]
        if durability == "exposed":
            if self.world.clients_wait:
                self._bad("E16", f"{identifier} was accepted by {site} alone, and its client wanted both sites")
        elif other.site not in self.world.destroyed and not _holds(other, identifier):
            self._bad("E16", f"{site} told that {identifier} is at both sites, and {other.site} does not hold it")

    def _bad(self, rule: str, text: str) -> None:
        self.violations.append(Violation(rule, text))


def _flushed_outbox(server: Server, lane: Lane) -> list[bytes]:
    """What a server owes on a lane, counting what it has flushed and not replayed yet."""
    held: list[bytes] = list(server.table("outbox").get(lane, ()))
    if server.in_recovery:
        for entry in server.log[server.replayed :]:
            for operation, table, key, value in entry.writes:
                if operation == EXTEND and table == "outbox" and key == lane:
                    held += value
    return held


def _holds(server: Server, identifier: str) -> bool:
    """Whether a server has an instruction, counting what it has flushed and not replayed yet."""
    if identifier in server.table("ids"):
        return True
    unseen = server.log[server.replayed :] if server.in_recovery else ()
    return any(table == "ids" and key == identifier for entry in unseen for _, table, key, _ in entry.writes)


_ALARMS = {
    "have no row": "S2",
    "was sent in epoch": "I21",
    "other bytes": "I7",
    "were acknowledged": "I9",
    "replay": "S11",
}


NOTICED = ("I9", "I21", "I7")
"""Alarms that say: two histories have met."""


def judge(run: Run, watch: Watch) -> list[Violation]:
    """Everything that is wrong with a finished run, worst first."""
    found = list(watch.violations)
    world = run.world
    alarms = [_alarm(text) for _, _, text in run.schedule.broken if not _is_of_a_superseded_sender(world, text)]
    noticed = any(alarm.rule in NOTICED for alarm in alarms)
    if run.plan.errant and (noticed or run.quiet_at is None):
        return found  # operators let two sites go on alone: it shows, and people have to sort it out
    found += alarms
    server = world.servers[world.active]
    reference, problems = _reference(world, server)
    found += problems
    if not problems:
        found += judge_decisions(world, server)
    at_rest = run.quiet_at is not None
    for lane, receiver in world.receivers.items():
        found += _judge_lane(receiver, reference.get(lane, []), watch, complete=at_rest and not problems)
    if run.plan.errant:
        return found  # what a wrong operator takes back from clients nobody can notice
    found += _judge_clients(run, server)
    found += _judge_fences(server) + _judge_senders(world)
    if set(map(_name, world.diverged)) - set(map(_name, world.kept)):
        found.append(Violation("S16", "a segment that only a replaced copy had was not kept for audit"))
    if at_rest:
        found += _judge_standby(world, server)
    else:
        found.append(Violation("L2", "not at rest in time after everything was healed"))
    return found


def _alarm(text: str) -> Violation:
    rule = next((rule for words, rule in _ALARMS.items() if words in text), "I0")
    return Violation(rule, text)


_MET = re.compile(r"was sent in epoch (\d+), which is not part of the history of epoch (\d+)")


def _is_of_a_superseded_sender(world: World, text: str) -> bool:
    """Whether an old sender stopped because it found a newer one's message at a receiver that does not refuse it.

    The alarm is right then, and no sign of two histories: the newer epoch is one of those that lasted.
    """
    met = _MET.search(text)
    if met is None or any(receiver.fences for receiver in world.receivers.values()):
        return False
    found, own = (Epoch(int(epoch)) for epoch in met.groups())
    return found > own and found in world.servers[world.active].lineage


def _reference(world: World, server: Server) -> tuple[dict[Lane, list[bytes]], list[Violation]]:
    """What the final journal owes when it is replayed in one pass, and where the journal itself is wrong."""
    reference: dict[Lane, list[bytes]] = {}
    problems: list[Violation] = []
    lineage = server.lineage
    for stage in world.topology.stages:
        place = (stage.name, stage.partition)
        replay = Replay(stage, first_head(lineage.rows[0].epoch, world.topology.producers[stage.name]))
        segments: Sequence[Segment] = server.table("segments").get(place, ())
        epoch = 0
        for number, segment in enumerate(segments, start=1):
            values = world.values_of(server, place[1], segment)
            problem = _judge_segment(segment, number, epoch, replay, values)
            if problem is not None:
                problems.append(problem)
                break
            epoch = segment.epoch
            try:
                owed = replay.apply(segment, values)
            except Broken as error:
                problems.append(Violation("S11", error.message))
                break
            for (channel, target), (_, emitted) in owed.items():
                reference.setdefault(Lane(channel, stage.partition, target), []).extend(emitted)
        else:
            stored = {key[2]: value for key, value in server.table("state").items() if key[:2] == place and value}
            if stored != replay.state:
                problems.append(Violation("S11", f"the state of {stage.name} is not what its journal gives"))
            head = server.tables["heads"][place]
            if (head.vector, head.numbers, head.chain) != (
                replay.head.vector,
                replay.head.numbers,
                replay.head.chain,
            ):
                problems.append(Violation("S10", f"the head of {stage.name} is not the end of its journal"))
    return reference, problems


def _judge_segment(
    segment: Segment, number: int, epoch: int, replay: Replay, values: Sequence[bytes]
) -> Violation | None:
    """S4, S12, S15, S17: dense, in producer order, with the rows they name, in epochs that never fall."""
    if segment.segment != number or segment.previous != replay.head.chain:
        return Violation("S10", f"segment {segment.segment} does not follow segment {number - 1}")
    if segment.epoch < epoch:
        return Violation("S15", f"segment {number} of epoch {segment.epoch} stands behind epoch {epoch}")
    vector = dict(replay.head.vector)
    for producer, first, count in segment.runs:
        if producer not in vector:
            return Violation("S2", f"segment {number} applied a record of nobody's")
        if first <= vector[producer]:
            return Violation("S12", f"{producer}:{first} is applied twice")
        if first != vector[producer] + 1:
            return Violation("S4", f"{producer}:{first} follows {producer}:{vector[producer]}")
        vector[producer] = type(first)(first + count - 1)
    if len(values) != len(segment.digests):
        return Violation("S2", f"segment {number} has records without a row")
    if any(digest_of(value) != digest for value, digest in zip(values, segment.digests, strict=True)):
        return Violation("S2", f"segment {number} applied a record that differs from its row")
    if any(decision.digest != segment.digests[place] for place, decision in segment.decided):
        return Violation("I22", f"segment {number} carries out a decision about another record")
    return None


def _name(diverged: tuple[SiteName, Segment, object, object]) -> tuple[object, ...]:
    site, segment, stage, partition = diverged
    return site, stage, partition, segment.segment, segment.chain


def _judge_fences(server: Server) -> list[Violation]:
    """S15: behind the cut of an epoch there is no segment of an older one."""
    for row in server.lineage.rows:
        for cut in row.cut.heads:
            segments = server.table("segments").get((cut.stage, cut.partition), ())
            if any(segment.epoch < row.epoch for segment in segments[cut.segment :]):
                return [Violation("S15", f"an older epoch wrote behind the cut of epoch {row.epoch}")]
    return []


def _judge_senders(world: World) -> list[Violation]:
    """S6: where receivers refuse older senders, nothing of one is accepted behind a newer claim."""
    highest: dict[Lane, tuple[int, int]] = {}
    for note in world.outside:
        lane = note.lane if isinstance(note, Attempt) else note.effect.lane
        if not world.receivers[lane].fences:
            continue
        if isinstance(note, Attempt):
            if note.installation == THEIRS.name:
                continue
            claim = highest.get(note.lane, (0, 0))
            if note.answer == "accepted" and (note.epoch, note.incarnation) < claim:
                return [Violation("S6", f"{note.lane.channel} {note.number} came from an older sender")]
        elif note.allowed:
            highest[note.effect.lane] = (note.effect.epoch, note.effect.incarnation)
    return []


def _judge_lane(receiver: Receiver, reference: Sequence[bytes], watch: Watch, *, complete: bool) -> list[Violation]:
    """S1, S2, S3, S5, S6: what the receiver accepted against what the journal owes."""
    name = receiver.lane.channel
    last = epoch = 0
    for attempt in _ours(receiver.accepted):
        number = attempt.number
        if number <= last:
            if receiver.receiver is ReceiverClass.R3 and (receiver.lane, number) in watch.doubted:
                continue
            return [Violation("S3", f"{name} {number} was accepted twice")]
        if number > last + 1:
            return [Violation("S5", f"{name} {number} was accepted behind {last}")]
        if number > len(reference) or reference[number - 1] != attempt.value:
            return [Violation("S2", f"{name} {number} is not what the journal owes")]
        if receiver.fences and attempt.epoch < epoch:
            return [Violation("S6", f"{name} {number} was sent in epoch {attempt.epoch}, after epoch {epoch}")]
        if receiver.receiver.remembers and (attempt.epoch, attempt.incarnation) not in receiver.claims:
            return [Violation("S7", f"{name} {number} was sent without a claim")]
        if watch.sites.get(attempt.epoch) != attempt.site:
            return [Violation("S6", f"{name} {number} was sent by {attempt.site} in epoch {attempt.epoch}")]
        last, epoch = number, attempt.epoch
    if complete and last < len(reference):
        return [Violation("S1", f"{name} {last + 1} is owed and was never accepted")]
    for attempt in _ours(receiver.attempts):
        if attempt.answer == "repeat" and attempt.value != reference[attempt.number - 1]:
            return [Violation("S2", f"{name} {attempt.number} was sent again with other bytes")]
    return []


def _ours(attempts: Sequence[Attempt]) -> Iterator[Attempt]:
    """What did not come from another installation, and say so."""
    return (attempt for attempt in attempts if attempt.installation != THEIRS.name)


def _judge_clients(run: Run, server: Server) -> list[Violation]:
    """S1, S14, S19: what clients were told against the instruction rows."""
    rows = server.table("instructions")
    feeds = {(feed.producer, feed.partition) for feed in run.topology.feeds}
    for client in run.clients:
        before: dict[int, int] = {}
        for _, instruction, serial in client.accepted:
            if not isinstance(serial, int):
                continue
            stored = rows.get((instruction.producer, instruction.partition), ())
            if len(stored) < serial:
                return [Violation("S1", f"{instruction.identifier} was acknowledged and is gone")]
            if (instruction.producer, instruction.partition) not in feeds:
                return [Violation("S1", f"{instruction.identifier} was acknowledged, and nobody takes it")]
            if stored[serial - 1] != (instruction.identifier, instruction.value):
                return [Violation("S14", f"{instruction.identifier} was acknowledged as {serial}, which is another")]
            if not run.plan.given and serial <= before.get(instruction.partition, 0):
                return [Violation("S19", f"{instruction.identifier} came after {serial} and stands before it")]
            before[instruction.partition] = serial
    names = [name for some in rows.values() for name, _ in some]
    if len(names) != len(set(names)):
        return [Violation("S3", "an instruction has two rows")]
    return []


def _judge_standby(world: World, server: Server) -> list[Violation]:
    """S9, S13: the standby holds the same, and its topics hold it in the order of the journal."""
    other = world.servers[OTHER[server.site]]
    for table in ("segments", "outbox", "instructions", "heads"):
        if server.table(table) != other.table(table):
            return [Violation("S9", f"{table} differ between the sites")]
    standing = other.standing()
    for stage in world.topology.stages:
        topic = topic_at(stage.topic, standing.rejoined.get(other.site))
        log = world.logs.get((other.site, topic, stage.partition))
        if log is None or log.first or log.lost:
            continue  # where the beginning was deleted, only repeats may be left of what stood there
        places = {}
        for segment in other.table("segments").get((stage.name, stage.partition), ()):
            position = segment.first_position
            for producer, first, count in segment.runs:
                for step in range(count):
                    places[producer, first + step] = position + step
                position += count
        seen: set[tuple[int, int]] = set()
        last = -1
        for record in log.records:
            if record is None or record.mark == THEIRS.mark or (record.producer, record.serial) in seen:
                continue
            seen.add((record.producer, record.serial))
            position = places.get((record.producer, record.serial))
            if position is None:
                continue
            if position < last:
                return [Violation("S13", f"{topic} at {other.site} is not in the order of the journal")]
            if last >= 0 and position > last + 1:
                return [Violation("S13", f"{topic} at {other.site} leaves out position {last + 1}")]
            last = position
    return []
