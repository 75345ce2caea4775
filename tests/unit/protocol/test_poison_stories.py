"""A batch with a record that cannot be taken, told answer by answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from zerotail import ports
from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.head import Head, Hint, Segment, first_head
from zerotail.core.identity import (
    Lsn,
    Offset,
    PartitionNumber,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    TopicName,
    epoch_of,
)
from zerotail.core.poison import Decision, Poison, RecordName, Remedy
from zerotail.core.receiver import OF_THE_RECEIVER
from zerotail.core.record import digest_of
from zerotail.errors import Broken
from zerotail.failover.replay import Replay
from zerotail.flow.produce import STANDING_READS, produce
from zerotail.flow.stage import Place, Stage, Taken, run_stage, take_batch
from zerotail.handler import Emission, Given, Record, State, decode_value, describe, encode_value

pytestmark = pytest.mark.fast

EAST = SiteName("east")
EPOCH = epoch_of(1, 0)
STANDING = ports.Standing(
    Lineage((EpochRow(EPOCH, EAST, Timeline(1), Durability.GATED, Phase.LIVE, Cut()),)), Timeline(1), 7
)
HEAD = replace(first_head(EPOCH, [ProducerNumber(1)]), hint=Hint("log", Offset(5)), claim=1)
PLACE = Place(STANDING, HEAD, {}, None)
BEHIND = Hint("log", Offset(9))
DONE = ports.Done(Lsn(9))
A = ProducerNumber(1)


NO_KEYS: dict[str, Any] = {"none": None, "text": "total", "zero": ["a\0b"], "half": ["\ud800"], "number": [7]}
"""What `keys` gives for a value that names one of these."""


class Total:
    """Appends numbers to a list in the state, in place. Fails at a number below 0, after it was appended; at 0 it
    appends something that cannot be stored.
    """

    def keys(self, record: Record) -> list[str]:
        value = record.value
        keys: list[str] = NO_KEYS[value] if isinstance(value, str) else [*value[1], "total"]
        return keys

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        number = record.value[0]
        state.setdefault("total", []).append(number or object())
        if number < 0:
            raise ValueError(f"{number} is below \x1b[31m0\0")
        return [Emission("bank", len(state["total"]))]


STAGE = Stage(StageName("c"), PartitionNumber(0), TopicName("p"), Total(), "1", {"bank": 1})


@dataclass
class Database:
    """Answers a stage as its database would, and remembers what it was told."""

    state: dict[str, bytes]
    told: list[ports.Effect]
    answers: Mapping[type[ports.Effect], Callable[[Any], Any]]

    def answer(self, effect: ports.Effect) -> Any:
        self.told.append(effect)
        if type(effect) in self.answers:
            return self.answers[type(effect)](effect)
        if isinstance(effect, ports.LoadState):
            return ports.StateLoaded({key: self.state[key] for key in effect.keys if key in self.state})
        if isinstance(effect, ports.Commit):
            self.state |= {key: value for key, value in effect.state.items() if value is not None}
        return DONE

    def all(self, kind: type[Any]) -> list[Any]:
        return [effect for effect in self.told if isinstance(effect, kind)]


def database(**answers: Callable[[Any], Any]) -> Database:
    return Database({}, [], {getattr(ports, name): answer for name, answer in answers.items()})


def number(value: int) -> bytes:
    return encode_value([value, []])


def batch_of(values: Sequence[bytes], first: int = 1, producer: ProducerNumber = A) -> ports.Batch:
    serials = [Serial(first + place) for place in range(len(values))]
    return ports.Batch([producer] * len(values), serials, [EPOCH] * len(values), [*map(digest_of, values)], values)


def told(story: ports.Story[Any], world: Database) -> Any:
    answer = None
    try:
        while True:
            effect = story.send(answer)
            answer = None if isinstance(effect, ports.Pause) else world.answer(effect)
    except StopIteration as stop:
        return stop.value


def take(values: Sequence[bytes], world: Database, place: Place = PLACE, first: int = 1) -> Any:
    return told(take_batch(STAGE, place, batch_of(values, first), BEHIND, 0), world)


def decided(serial: int, value: bytes, remedy: Remedy, instead: bytes = b"") -> dict[RecordName, Decision]:
    return {(A, Serial(serial)): Decision(remedy, digest_of(value), instead)}


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "middle", "last"])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"{", "DecodeError"),
        (b"null", "TypeError"),
        (number(-4), "ValueError: -4 is below"),
        (encode_value("none"), "no state key: TypeError"),
        (encode_value("text"), "no state key: TypeError: the text 'total'"),
        (encode_value("zero"), "no state key: ValueError: a key holds a zero byte"),
        (encode_value("half"), "no state key: UnicodeEncodeError"),
        (encode_value("number"), "no state key: TypeError"),
        (number(0), "the state cannot be stored: TypeError"),
    ],
    ids=["no-json", "keys-raise", "apply-raises", "no-keys", "a-text", "zero-byte", "half-a-sign", "a-number", "state"],
)
def test_everything_in_front_of_the_record_is_stored_and_the_partition_stops(
    place: int, bad: bytes, reason: str
) -> None:
    values = [number(10), number(20), number(30)]
    values[place] = bad
    world = database()
    taken = take(values, world)
    assert isinstance(taken, Taken)
    assert taken.applied == place
    commits = world.all(ports.Commit)
    assert len(commits) == (1 if place else 0)
    if place:
        assert commits[0].segment.runs == ((A, Serial(1), place),)
        assert commits[0].head.hint == HEAD.hint, "the hint behind the batch would pass over the rest of it"
        assert decode_value(world.state["total"]) == [10, 20][:place], "nothing of the failing record is stored"
    (recorded,) = world.all(ports.RecordPoison)
    assert recorded.poison == taken.stopped
    assert recorded.expected == taken.head.token
    assert (recorded.poison.serial, recorded.poison.position) == (place + 1, place)
    assert recorded.poison.digest == digest_of(bad)
    assert reason in recorded.poison.reason
    assert recorded.poison.reason.isprintable()


def test_of_two_bad_records_the_first_one_stops_the_partition() -> None:
    world = database()
    taken = take([number(1), number(-2), number(3), b"{"], world)
    assert (taken.applied, taken.stopped.serial) == (1, 2)


def test_what_a_failing_record_wrote_into_state_that_was_there_before_is_not_stored() -> None:
    world = database()
    world.state["total"] = encode_value([1])
    take([number(2), number(-5)], world)
    assert decode_value(world.state["total"]) == [1, 2]


def test_a_state_that_a_later_record_spoils_does_not_take_the_ones_before_it_along() -> None:
    world = database()
    taken = take([*map(number, range(1, 40)), number(0), *map(number, range(1, 20))], world)
    assert (taken.applied, taken.stopped.serial) == (39, 40)
    assert decode_value(world.state["total"]) == list(range(1, 40))
    assert len(world.all(ports.LoadState)) == 2, "found by halves, not one by one"


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_whose_text_cannot_be_read_is_described_all_the_same() -> None:
    assert describe(Unreadable()) == "Unreadable: (its text cannot be read)"


def test_a_skipped_record_has_its_place_in_the_order_and_no_effect() -> None:
    world = database()
    place = replace(PLACE, decisions=decided(2, number(-5), Remedy.SKIP))
    taken = take([number(1), number(-5), number(3)], world, place)
    assert (taken.applied, taken.stopped) == (3, None)
    (commit,) = world.all(ports.Commit)
    assert commit.segment.runs == ((A, Serial(1), 3),)
    assert commit.segment.decided == ((1, place.decisions[A, Serial(2)]),)
    assert commit.head.hint == BEHIND
    assert decode_value(world.state["total"]) == [1, 3]


def test_a_record_that_cannot_even_be_read_can_be_skipped() -> None:
    world = database()
    assert take([b"{"], world, replace(PLACE, decisions=decided(1, b"{", Remedy.SKIP))).applied == 1
    assert world.state == {}


def test_a_replaced_record_has_the_effect_of_its_replacement_and_the_digest_of_its_own() -> None:
    world = database()
    place = replace(PLACE, decisions=decided(2, b"{", Remedy.REPLACE, number(7)))
    taken = take([number(1), b"{", number(3)], world, place)
    assert taken.applied == 3
    assert world.all(ports.Commit)[0].segment.digests[1] == digest_of(b"{")
    assert decode_value(world.state["total"]) == [1, 7, 3]


def test_a_replacement_at_which_the_handler_fails_stops_the_partition_again() -> None:
    world = database()
    place = replace(PLACE, decisions=decided(1, b"{", Remedy.REPLACE, number(-7)))
    taken = take([b"{"], world, place)
    assert taken.stopped.digest == digest_of(b"{")
    assert "-7 is below" in taken.stopped.reason


def test_a_decision_about_other_bytes_does_not_hold() -> None:
    world = database()
    place = replace(PLACE, decisions=decided(1, number(-1), Remedy.SKIP))
    assert take([number(-2)], world, place).stopped.digest == digest_of(number(-2))
    assert take([number(2)], world, place).applied == 1
    assert world.all(ports.Commit)[0].segment.decided == ()


def segment_of(world: Database) -> Segment:
    segment: Segment = world.all(ports.Commit)[0].segment
    return segment


def test_a_replay_decides_alike_and_notices_when_a_decision_is_gone_or_another() -> None:
    values = [number(1), number(-5), b"{"]
    decisions = decided(2, number(-5), Remedy.SKIP) | decided(3, b"{", Remedy.REPLACE, number(7))
    world = database()
    take(values, world, replace(PLACE, decisions=decisions))
    segment = segment_of(world)
    replay = Replay(STAGE, HEAD)
    replay.apply(segment, values)
    assert replay.state == world.state
    with pytest.raises(Broken, match="fails at place"):
        Replay(STAGE, HEAD).apply(replace(segment, decided=()), values)
    other = (segment.decided[0], (2, replace(segment.decided[1][1], value=number(8))))
    with pytest.raises(Broken, match="another input chain"):
        Replay(STAGE, HEAD).apply(replace(segment, decided=other), values)


def test_whoever_was_replaced_records_nothing_and_ends() -> None:
    world = database(RecordPoison=lambda _: ports.Refused("the head has moved"))
    assert take([b"{"], world) is ports.End.SUPERSEDED


def test_a_record_that_could_not_be_noted_stops_the_partition_all_the_same() -> None:
    world = database(RecordPoison=lambda _: ports.Unreachable())
    assert take([b"{"], world).stopped.serial == 1


def test_nothing_is_noted_when_the_records_before_it_could_not_be_stored() -> None:
    other = replace(HEAD, claim=2)
    world = database(
        Commit=lambda _: ports.Refused("the head has moved"), ReadHead=lambda _: ports.HeadRead(STANDING, other)
    )
    assert take([number(1), b"{"], world) is ports.End.SUPERSEDED
    assert world.all(ports.RecordPoison) == []


def test_a_twin_that_stored_the_records_before_it_is_recognised_and_the_record_noted() -> None:
    world = database(Commit=lambda _: ports.Refused("the head has moved"))

    def stored(_: ports.ReadHead) -> ports.HeadRead:
        return ports.HeadRead(STANDING, world.all(ports.Commit)[0].head)

    world.answers = {**world.answers, ports.ReadHead: stored}
    taken = take([number(1), b"{"], world)
    assert (taken.applied, taken.stopped.serial) == (1, 2)


def test_an_older_writer_is_refused_by_the_claim() -> None:
    world = database(
        Commit=lambda effect: DONE if effect.expected.claim == 2 else ports.Refused("the head has moved"),
        ReadHead=lambda _: ports.HeadRead(STANDING, replace(HEAD, claim=2)),
    )
    assert take([number(1)], world) is ports.End.SUPERSEDED
    assert take([number(1)], world, replace(PLACE, head=replace(HEAD, claim=2))).applied == 1


def test_a_producer_that_the_place_does_not_know_is_looked_up_once() -> None:
    known = replace(HEAD, vector={A: Serial(0), ProducerNumber(2): Serial(0)})
    batch = batch_of([number(1)], producer=ProducerNumber(2))
    world = database(ReadHead=lambda _: ports.HeadRead(STANDING, known))
    assert told(take_batch(STAGE, PLACE, batch, BEHIND, 0), world).applied == 1
    moved = database(ReadHead=lambda _: ports.HeadRead(STANDING, replace(known, claim=2)))
    assert told(take_batch(STAGE, PLACE, batch, BEHIND, 0), moved).foreign == 1
    assert len(moved.all(ports.ReadHead)) == 1


@dataclass
class Partition:
    """A partition with one log, whose database is asked again and again by a running stage."""

    values: Sequence[bytes]
    head: Head
    row: Poison | Decision | None = None
    looks: int = 0
    decide: Callable[[Poison, int], Poison | Decision | None] = lambda poison, _: poison

    def read(self, _: object) -> ports.HeadRead:
        self.looks += 1
        if isinstance(self.row, Poison):
            self.row = self.decide(self.row, self.looks)
        decisions = {} if not isinstance(self.row, Decision) else {(A, Serial(self.head.vector[A] + 1)): self.row}
        stopped = self.row if isinstance(self.row, Poison) else None
        return ports.HeadRead(STANDING, self.head, decisions, stopped)

    def poll(self, effect: ports.PollRecords) -> Any:
        if self.head.vector[A] == len(self.values):
            return ports.Refused("the test ends here")
        return ports.Polled(batch_of(self.values), BEHIND, 0)

    def commit(self, effect: ports.Commit) -> ports.Done:
        self.head, self.row = effect.head, None
        return DONE

    def note(self, effect: ports.RecordPoison) -> ports.Done:
        self.row = effect.poison
        return DONE

    def run(self) -> Database:
        world = database(
            ClaimHead=self.read, ReadHead=self.read, PollRecords=self.poll, Commit=self.commit, RecordPoison=self.note
        )
        story = run_stage(STAGE, EAST)
        answer = None
        while self.head.vector[A] < len(self.values):
            effect = story.send(answer)
            answer = None if isinstance(effect, ports.Pause) else world.answer(effect)
        return world


def test_a_stopped_stage_waits_for_the_decision_and_goes_on_with_it() -> None:
    def after_three_looks(poison: Poison, looks: int) -> Poison | Decision:
        return poison if looks < 4 else Decision(Remedy.SKIP, poison.digest)

    partition = Partition([number(1), number(-5), number(3)], HEAD, decide=after_three_looks)
    world = partition.run()
    assert len(world.all(ports.PollRecords)) == 2, "a stopped stage reads nothing"
    assert [commit.segment.runs for commit in world.all(ports.Commit)] == [((A, 1, 1),), ((A, 2, 2),)]


def test_a_retry_that_fails_again_is_noted_again() -> None:
    answers: list[Decision | None] = [None, None, Decision(Remedy.SKIP, digest_of(b"{"))]
    partition = Partition([b"{"], HEAD, decide=lambda _, __: answers.pop(0))
    world = partition.run()
    assert len(world.all(ports.RecordPoison)) == 3


def test_a_stage_that_starts_at_a_stopped_partition_does_not_try_by_itself() -> None:
    waiting = Poison(A, Serial(1), HEAD.next_position, digest_of(b"{"), "why")

    def later(poison: Poison, looks: int) -> Poison | Decision:
        return poison if looks < 3 else Decision(Remedy.SKIP, poison.digest)

    world = Partition([b"{"], HEAD, waiting, decide=later).run()
    assert world.all(ports.RecordPoison) == []


def test_a_stopped_stage_ends_when_another_one_has_claimed_the_partition() -> None:
    stopped = Poison(A, Serial(1), HEAD.next_position, digest_of(b"{"), "why")
    reads = [HEAD, HEAD, replace(HEAD, claim=2)]
    world = database(
        ClaimHead=lambda _: ports.HeadRead(STANDING, reads.pop(0), {}, stopped),
        ReadHead=lambda _: ports.HeadRead(STANDING, reads.pop(0), {}, stopped),
    )
    assert told(run_stage(STAGE, EAST), world) is ports.End.SUPERSEDED


def test_a_producer_does_not_send_again_and_again_to_a_partition_that_waits_for_an_operator() -> None:
    feed = ports.Feed(A, TopicName("p"), PartitionNumber(0), StageName("c"))

    def sent(stopped: bool) -> int:
        story = produce(feed, EAST)
        sends = 0
        answer: Any = None
        for _ in range(20 * STANDING_READS):
            effect = story.send(answer)
            if isinstance(effect, ports.ReadFeed):
                values = [number(1)] if not effect.after else []
                answer = ports.Fed(STANDING, Lsn(1), Serial(0), 0, Serial((effect.after or 0) + 1), values, stopped)
            else:
                sends += isinstance(effect, ports.SendRecords)
                answer = DONE
        return sends

    assert sent(stopped=True) == 1
    assert sent(stopped=False) > 2


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()])
@pytest.mark.parametrize("where", ["keys", "apply"])
def test_a_handler_that_wants_to_leave_stops_its_partition_and_not_its_process(
    error: BaseException, where: str
) -> None:
    class Leaves(Total):
        def keys(self, record: Record) -> list[str]:
            if where == "keys":
                raise error
            return super().keys(record)

        def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
            raise error

    stage = replace(STAGE, handler=Leaves())
    taken = told(take_batch(stage, PLACE, batch_of([number(1)]), BEHIND, 0), database())
    assert taken.stopped is not None
    assert type(error).__name__ in taken.stopped.reason


def test_a_message_that_the_next_topic_does_not_take_is_named_and_nothing_in_front_of_it_is_sent_again() -> None:
    feed = ports.Feed(A, TopicName("p"), PartitionNumber(0), StageName("c"))
    story = produce(feed, EAST, patience=1000)
    values = [number(1), number(2), b"much", number(3)]
    sent: list[list[bytes]] = []
    pauses: list[ports.Pause] = []
    answer: Any = None
    while len(pauses) < 3:
        effect = story.send(answer)
        answer = None
        if isinstance(effect, ports.ReadFeed):
            after = effect.after or 0
            answer = ports.Fed(STANDING, Lsn(1), Serial(0), 0, Serial(after + 1), values[after:], stopped=False)
        elif isinstance(effect, ports.SendRecords):
            sent.append(list(effect.records.values))
            answer = ports.TooLarge(effect.records.values.index(b"much"), "larger than the topic takes")
        elif isinstance(effect, ports.Pause):
            pauses.append(effect)
    assert sent == [values, values[2:], values[2:]]
    assert all(pause.retries for pause in pauses)
    assert pauses[0].reason.startswith(OF_THE_RECEIVER), "status looks for it"
    assert "number 3 for p" in pauses[0].reason
    assert "larger than the topic takes" in pauses[0].reason
