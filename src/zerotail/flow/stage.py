"""A stage: takes records in the order in which they lie in its partition, and stores what it did in one
transaction.

One micro-batch, `take_batch`:

1. admit: per producer only what follows the vector; ask for what is missing;
2. load the state under the keys that the handler names, and apply the handler in order;
3. commit order, state and emissions by compare-and-set on the head and on the timeline;
4. if nobody knows whether the commit happened, or somebody was faster, read the head: its chain says whether it was
   this very batch. Never repeat blindly, never forget;
5. a record that cannot be taken stops the partition, with everything in front of it stored (`core/poison.py`).

The time of a segment never falls, so one that a clock far in the future has given would stand for ever, at both sites:
a batch is taken only at a time that the database finds plausible.

The head is the only truth about how far the stage has come; where to read in Kafka is a hint beside it.
Tasks may run twice, drivers may be zombies: the compare-and-set decides who goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from zerotail.core import admission
from zerotail.core.admission import FOREIGN, Admission, Arrivals
from zerotail.core.epoch import topic_at
from zerotail.core.head import Head, Hint
from zerotail.core.identity import PartitionNumber, SiteName, StageName, Timeline, TopicName
from zerotail.core.poison import Decision, Poison, RecordName
from zerotail.errors import Broken, Unavailable
from zerotail.flow.apply import Applied, Order, SpoiledError, apply_opened, open_order, order_of
from zerotail.handler import Handler
from zerotail.ports import (
    Batch,
    ClaimHead,
    Commit,
    Done,
    End,
    HeadRead,
    HintLost,
    LoadState,
    Pause,
    Polled,
    PollRecords,
    ReadHead,
    RecordPoison,
    Refused,
    RequestAgain,
    Standing,
    StateLoaded,
    Story,
    Unreachable,
)

AHEAD_MICROSECONDS = 60_000_000
"""So much may the clock of a stage be ahead of the database's."""
_LAST_SECOND = 253_402_300_799
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
class Place:
    """Where a partition of a stage stands: what its next batch starts from."""

    standing: Standing
    head: Head
    decisions: Mapping[RecordName, Decision]
    """What operators decided about records that are not taken yet."""
    stopped: Poison | None
    """The record at which it stopped, while nothing is decided about it."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch: the head behind it, and what was left out."""

    head: Head
    applied: int
    repeats: int
    orphans: int
    foreign: int
    held: int
    stopped: Poison | None = None
    """The record at which the partition stopped."""
    strangers: int = 0
    """Of the foreign ones: those of another installation."""


def place_of(read: HeadRead) -> Place:
    """Where a partition stands by what its database says."""
    return Place(read.standing, read.head, read.decisions, read.stopped)


def run_stage(stage: Stage, site: SiteName, *, limit: int = 50_000) -> Story[End]:
    """Take batch after batch until this site is not the active one any more, or another instance is ahead."""
    place = yield from claim_place(stage, site)
    if isinstance(place, End):
        return place
    topic = topic_at(stage.topic, place.standing.rejoined.get(site))
    hint = place.head.hint
    idle = 0
    while True:
        if place.stopped is not None:
            yield Pause(f"stopped at serial {place.stopped.serial} of producer {place.stopped.producer}")
            read = yield ReadHead(stage.name, stage.partition)
            if isinstance(read, HeadRead):
                if read.head.token != place.head.token or not read.standing.live_at(site):
                    return End.SUPERSEDED
                place, hint = place_of(read), read.head.hint
            continue
        polled = yield PollRecords(topic, stage.partition, hint, limit, place.standing.installation)
        if isinstance(polled, HintLost):
            # Another log, or one that does not reach back: from its beginning, producers send the rest again.
            hint = None
        elif not isinstance(polled, Polled):
            yield Pause("Kafka does not answer")
        elif len(polled.batch.serials) == 0:
            hint = polled.hint
            yield Pause("no records")
            idle += 1
            if idle % IDLE_POLLS == 0 and not (yield from _still_ahead(stage, site, place.head)):
                return End.SUPERSEDED
        else:
            taken = yield from take_batch(stage, place, polled.batch, polled.hint, polled.at)
            if isinstance(taken, End):
                return taken
            place, hint = replace(place, head=taken.head, stopped=taken.stopped), polled.hint


def claim_place(stage: Stage, site: SiteName) -> Story[Place | End]:
    """Become the one who goes on with a partition: whoever was at work before is refused from now on."""
    read = yield ClaimHead(stage.name, stage.partition)
    while not isinstance(read, HeadRead | Refused):
        # One claim too many is harmless: it was ours.
        yield Pause("the database does not answer")
        read = yield ClaimHead(stage.name, stage.partition)
    if not isinstance(read, HeadRead) or not read.standing.live_at(site):
        return End.NOT_ACTIVE
    return place_of(read)


def _still_ahead(stage: Stage, site: SiteName, head: Head) -> Story[bool]:
    """Whether an idle stage is still the one that works: nothing else would tell it."""
    read = yield ReadHead(stage.name, stage.partition)
    return not isinstance(read, HeadRead) or (read.standing.live_at(site) and read.head.token == head.token)


def take_batch(stage: Stage, place: Place, batch: Batch, hint: Hint, at: int) -> Story[Taken | End]:
    """One micro-batch of one partition."""
    # 1
    place = yield from _know_producers(stage, place, batch)
    head = place.head
    arrivals = Arrivals(batch.producers, batch.serials, batch.epochs)
    admitted = admission.admit(arrivals, head.vector, place.standing.lineage.limits(stage.partition))
    if admitted.gaps:
        yield RequestAgain(stage.name, stage.partition, head.epoch, admitted.gaps)
    if admitted.outdated:
        return End.SUPERSEDED
    order = order_of(batch, admitted.accepted, place.decisions)
    if not order:
        return _taken(head, 0, admitted, None, batch.strangers)
    # 2
    applied, spoiled = yield from _apply(stage, head, order, hint, max(at, head.decided_at))
    if isinstance(applied, End):
        return applied
    if applied is not None:
        # 3
        stored = yield from _store(stage, place, applied)
        if isinstance(stored, End):
            return stored
        head = stored
    count = 0 if applied is None else len(applied.segment.digests)
    if spoiled is None:
        return _taken(head, count, admitted, None, batch.strangers)
    # 5
    poison = Poison(
        order.producers[count], order.serials[count], head.next_position, order.digests[count], str(spoiled)
    )
    if isinstance((yield RecordPoison(stage.name, stage.partition, head.token, poison)), Refused):
        return End.SUPERSEDED
    return _taken(head, count, admitted, poison, batch.strangers)


def _know_producers(stage: Stage, place: Place, batch: Batch) -> Story[Place]:
    """A producer that this place does not know may have been added a moment ago: look once more."""
    if set(batch.producers) <= {FOREIGN, *place.head.vector}:
        return place
    read = yield ReadHead(stage.name, stage.partition)
    if isinstance(read, HeadRead) and read.head.token == place.head.token:
        return place_of(read)
    return place


def _taken(head: Head, applied: int, admitted: Admission, stopped: Poison | None, strangers: int) -> Taken:
    return Taken(head, applied, admitted.repeats, admitted.orphans, admitted.foreign, admitted.held, stopped, strangers)


def _apply(
    stage: Stage, head: Head, order: Order, hint: Hint, decided_at: int
) -> Story[tuple[Applied | End | None, SpoiledError | None]]:
    """Apply the handler to as many records as it can take, and say why it cannot take the one behind them."""
    spoiled = None
    while order:
        try:
            opened = open_order(stage.handler, head.next_position, order)
            loaded = yield LoadState(stage.name, stage.partition, opened.needed)
            while isinstance(loaded, Unreachable):
                yield Pause("the database does not answer")
                loaded = yield LoadState(stage.name, stage.partition, opened.needed)
            if not isinstance(loaded, StateLoaded):
                return End.SUPERSEDED, None
            _require_plausible(decided_at, head, loaded.clock)
            # The hint of a batch that stops in the middle would pass over the rest of it.
            reached = head.hint if spoiled else hint
            return apply_opened(stage, head, opened, loaded.values, decided_at, stage.version, reached), spoiled
        except SpoiledError as error:
            spoiled = error
            order = order.until(error.place)
    return None, spoiled


def _require_plausible(decided_at: int, head: Head, clock: int | None) -> None:
    """`Unavailable` when a batch would carry the time of its segment further ahead of the database than clocks differ.

    Where that has happened before there was this rule, the time stands, and the stage goes on.
    """
    if clock is None or decided_at <= max(head.decided_at, clock + AHEAD_MICROSECONDS):
        return
    ours, its = (
        datetime.fromtimestamp(min(at // 1_000_000, _LAST_SECOND), UTC).isoformat() for at in (decided_at, clock)
    )
    raise Unavailable(
        f"the clock of the machine that runs the stage says {ours}, and that of the database {its}: set them right, "
        "nothing is taken until then",
        code="ZT706",
        why="given.now never falls: a segment of the future would fix it there, at both sites.",
    )


def _store(stage: Stage, place: Place, applied: Applied) -> Story[Head | End]:
    """The head behind a batch that is stored, whoever stored it."""
    timeline = place.standing.timeline or Timeline(0)
    commit = Commit(
        stage.name,
        stage.partition,
        place.head.token,
        timeline,
        applied.head,
        applied.segment,
        applied.state,
        applied.owed,
    )
    outcome = yield commit
    while isinstance(outcome, Unreachable):
        yield Pause("the database does not answer")
        outcome = yield commit
    if isinstance(outcome, Done):
        return applied.head
    # 4
    return (yield from find_out(stage, applied.head))


def find_out(stage: Stage, moved: Head) -> Story[Head | End]:
    """Whether this very batch is stored, by this task or by its twin: only the head knows.

    The head that was read is the one to go on from: a handler that is not deterministic may have owed something else
    in the twin.
    """
    read = yield ReadHead(stage.name, stage.partition)
    while isinstance(read, Unreachable):
        yield Pause("the database does not answer")
        read = yield ReadHead(stage.name, stage.partition)
    if isinstance(read, HeadRead) and read.head.token == moved.token:
        return read.head
    return End.SUPERSEDED
