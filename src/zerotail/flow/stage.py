"""A stage: takes records in the order in which they lie in its partition, and stores what it did in one
transaction.

One micro-batch, `take_batch`:

1. admit: per producer only what follows the vector; ask for what is missing;
2. load the state under the keys that the handler names, and apply the handler in order;
3. commit order, state and emissions by compare-and-set on the head and on the timeline;
4. if nobody knows whether the commit happened, read the head: its chain says so. Never repeat blindly,
   never forget.

The head is the only truth about how far the stage has come; where to read in Kafka is a hint beside it.
Tasks may run twice, drivers may be zombies: the compare-and-set decides who goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zerotail.core import admission
from zerotail.core import head as heads
from zerotail.core.admission import Arrivals
from zerotail.core.emission import by_lane, number_emissions
from zerotail.core.epoch import topic_at
from zerotail.core.head import Head, Hint
from zerotail.core.identity import PartitionNumber, Position, SiteName, StageName, Timeline, TopicName
from zerotail.errors import Broken
from zerotail.handler import Handler, Record, State, apply_in_order, decode_value
from zerotail.ports import (
    Batch,
    Commit,
    Done,
    End,
    HeadRead,
    HintLost,
    Indefinite,
    LoadState,
    Pause,
    Polled,
    PollRecords,
    ReadHead,
    RequestAgain,
    Standing,
    StateLoaded,
    Story,
)

IDLE_POLLS = 4
"""So many empty polls make a stage look at its head."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage and one of its partitions."""

    name: StageName
    partition: PartitionNumber
    topic: TopicName
    handler: Handler
    version: str
    targets: Mapping[str, int]
    """Partitions of the channels that are topics; every other channel has one."""

    def partitions_of(self, channel: str) -> int:
        """How many target partitions a channel has; `Broken` if the stage has no such channel."""
        try:
            return self.targets[channel]
        except KeyError:
            raise Broken(f"the handler of {self.name} emits on {channel!r}, a channel it does not have") from None


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch: the head behind it, and what was left out."""

    head: Head
    applied: int
    repeats: int
    orphans: int
    foreign: int
    held: int


def run_stage(stage: Stage, site: SiteName, *, limit: int = 50_000) -> Story[End]:
    """Take batch after batch until this site is not the active one any more, or another instance is ahead."""
    read = yield ReadHead(stage.name, stage.partition)
    if not isinstance(read, HeadRead) or not read.standing.live_at(site):
        return End.NOT_ACTIVE
    standing, head = read.standing, read.head
    topic = topic_at(stage.topic, standing.rejoined.get(site))
    hint = head.hint
    idle = 0
    while True:
        polled = yield PollRecords(topic, stage.partition, hint, limit)
        if isinstance(polled, HintLost):
            # Another log, or one that does not reach back: from its beginning, producers send the rest again.
            hint = None
        elif not isinstance(polled, Polled):
            yield Pause("Kafka does not answer")
        elif len(polled.batch.serials) == 0:
            hint = polled.hint
            yield Pause("no records")
            idle += 1
            if idle % IDLE_POLLS == 0 and not (yield from _still_ahead(stage, site, head)):
                return End.SUPERSEDED
        else:
            taken = yield from take_batch(stage, standing, head, polled.batch, polled.hint, polled.at)
            if isinstance(taken, End):
                return taken
            head, hint = taken.head, polled.hint


def _still_ahead(stage: Stage, site: SiteName, head: Head) -> Story[bool]:
    """Whether an idle stage is still the one that works: nothing else would tell it."""
    read = yield ReadHead(stage.name, stage.partition)
    return not isinstance(read, HeadRead) or (read.standing.live_at(site) and read.head.token == head.token)


def take_batch(stage: Stage, standing: Standing, head: Head, batch: Batch, hint: Hint, at: int) -> Story[Taken | End]:
    """One micro-batch of one partition."""
    # 1
    arrivals = Arrivals(batch.producers, batch.serials, batch.epochs)
    admitted = admission.admit(arrivals, head.vector, standing.lineage.limits(stage.partition))
    if admitted.gaps:
        yield RequestAgain(stage.name, stage.partition, head.epoch, admitted.gaps)
    if admitted.outdated:
        return End.SUPERSEDED
    taken = Taken(head, len(admitted.accepted), admitted.repeats, admitted.orphans, admitted.foreign, admitted.held)
    if not admitted.accepted:
        return taken
    # 2
    records = [
        Record(
            batch.producers[index],
            batch.serials[index],
            Position(head.next_position + place),
            decode_value(batch.values[index]),
        )
        for place, index in enumerate(admitted.accepted)
    ]
    keys = [stage.handler.keys(record) for record in records]
    loaded = yield LoadState(stage.name, stage.partition, sorted({key for some in keys for key in some}))
    if not isinstance(loaded, StateLoaded):
        return End.SUPERSEDED
    state = State(loaded.values)
    decided_at = max(at, head.decided_at)
    said = apply_in_order(stage.handler, records, state, keys, decided_at, head.chain, stage.partitions_of)
    owed = number_emissions(head.numbers, said)
    moved, segment = heads.advance(
        head,
        producers=[record.producer for record in records],
        serials=[record.serial for record in records],
        digests=[batch.digests[index] for index in admitted.accepted],
        decided_at=decided_at,
        version=stage.version,
        owed=owed,
        hint=hint,
    )
    # 3
    timeline = standing.timeline or Timeline(0)
    outcome = yield Commit(
        stage.name, stage.partition, head.token, timeline, moved, segment, state.changes(), by_lane(owed)
    )
    if isinstance(outcome, Indefinite):
        # 4
        outcome = yield from find_out(stage, moved)
    if not isinstance(outcome, Done):
        return End.SUPERSEDED
    return Taken(moved, taken.applied, taken.repeats, taken.orphans, taken.foreign, taken.held)


def find_out(stage: Stage, moved: Head) -> Story[Done | End]:
    """Whether a commit that nobody confirmed has happened: only the head knows."""
    read = yield ReadHead(stage.name, stage.partition)
    if isinstance(read, HeadRead) and read.head.token == moved.token:
        return Done()
    return End.SUPERSEDED
