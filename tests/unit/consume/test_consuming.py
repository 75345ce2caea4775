"""The loop of a consumer, with a store and a log in memory: nothing twice, nothing skipped, nobody held up."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from zerotail.consume import Consuming, Elsewhere, Failed, Fenced, Lost, Moved, Partition, Place, Record, consuming
from zerotail.errors import Refused

pytestmark = pytest.mark.fast

P0, P1 = Partition("payments", 0), Partition("payments", 1)
GROUP = "booking"


@dataclass
class Store:
    """Results and places in memory; a transaction is the list of results that it adds."""

    results: list[str] = field(default_factory=list)
    places: dict[Partition, tuple[int | None, int]] = field(default_factory=dict)
    log: str | None = None
    """Of which log the places are; None before the first claim."""
    silent: int = 0
    """How many calls get no answer."""
    loses_commits: int = 0
    """How many commits happen, and nobody hears of it."""

    def claim(self, group: str, partition: Partition, log: str) -> Place | Elsewhere | Lost:
        assert group == GROUP
        if self.log not in (None, log):
            return Elsewhere(self.log or "")
        self.log = log
        if self.silent:
            self.silent -= 1
            return Lost("silent")
        offset, generation = self.places.get(partition, (None, 0))
        self.places[partition] = (offset, generation + 1)
        return Place(partition, offset, generation + 1)

    def transact(self, group: str, place: Place, work: Callable[[list[str]], int]) -> Moved | Fenced | Lost | Failed:
        if self.silent:
            self.silent -= 1
            return Lost("silent")
        added: list[str] = []
        try:
            next_offset = work(added)
        except ValueError as error:
            return Failed(error)
        if self.places[place.partition] != (place.next_offset, place.generation):
            return Fenced()
        self.results += added
        self.places[place.partition] = (next_offset, place.generation)
        if self.loses_commits:
            self.loses_commits -= 1
            return Lost("lost")
        return Moved(Place(place.partition, next_offset, place.generation))

    def close(self) -> None:
        """Nothing to give back."""


@dataclass
class Log:
    """A member in memory: reads what it was told to, and takes part in nothing."""

    values: dict[Partition, list[str]]
    changed: frozenset[Partition] | None = None
    positions: dict[Partition, int] = field(default_factory=dict)
    paused: set[Partition] = field(default_factory=set)
    noted: dict[Partition, int] = field(default_factory=dict)
    polls: int = 0
    name: str | None = "cluster/payments"

    def assign(self, *partitions: Partition) -> None:
        self.changed = frozenset(partitions)
        self.positions = {}

    def find_assignment(self) -> frozenset[Partition] | None:
        changed, self.changed = self.changed, None
        return changed

    def find_log(self, topic: str) -> str | None:
        return self.name

    def read_from(self, places: Mapping[Partition, int | None]) -> None:
        self.positions = {partition: offset or 0 for partition, offset in places.items()}
        self.paused = set()

    def poll(self, seconds: float, most: int) -> Sequence[Record]:
        self.polls += 1
        records = []
        for partition, position in self.positions.items():
            if partition not in self.paused:
                values = self.values[partition][position : position + 3]
                records += [Record(partition, position + n, None, value.encode(), 0) for n, value in enumerate(values)]
                self.positions[partition] += len(values)
        return records

    def hold(self, partition: Partition, offset: int) -> None:
        self.paused.add(partition)
        self.positions[partition] = offset

    def go_on(self, partition: Partition) -> None:
        self.paused.discard(partition)

    def note(self, partition: Partition, next_offset: int) -> None:
        self.noted[partition] = next_offset

    def close(self) -> None:
        """Nothing to leave."""


class Clock:
    """Time that passes when the test says so."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(consuming, "time", clock)
    return clock


class Bad(set[str]):
    """Values that fail for now."""

    def book(self, record: Record, results: list[str]) -> None:
        value = (record.value or b"").decode()
        results.append(value)
        if value in self:
            raise ValueError(value)


def made(count: int, start: str) -> list[str]:
    return [f"{start}{number}" for number in range(count)]


def test_every_record_has_one_result_in_order_and_the_place_is_behind_the_last(clock: Clock) -> None:
    store, log = Store(), Log({P0: made(10, "a"), P1: made(4, "b")})
    member = Consuming(log, store, GROUP, Bad().book)
    log.assign(P0, P1)
    for _ in range(5):
        member.round()
    assert [result for result in store.results if result[0] == "a"] == made(10, "a")
    assert [result for result in store.results if result[0] == "b"] == made(4, "b")
    assert store.places == {P0: (10, 1), P1: (4, 1)}
    assert log.noted == {P0: 10, P1: 4}
    assert member.stored == 14


def test_a_place_of_another_log_is_refused_and_stays_as_it_is(clock: Clock) -> None:
    store, log = Store(places={P0: (3, 4)}, log="other/payments"), Log({P0: made(10, "a")})
    log.assign(P0)
    with pytest.raises(Refused, match="the place of booking in payments/0 is one of another log, other/payments"):
        Consuming(log, store, GROUP, Bad().book).round()
    assert (store.results, store.places) == ([], {P0: (3, 4)})


def test_nothing_is_claimed_before_kafka_says_which_log_it_is(clock: Clock) -> None:
    store, log = Store(places={P0: (3, 4)}), Log({P0: made(10, "a")}, name=None)
    member = Consuming(log, store, GROUP, Bad().book)
    log.assign(P0)
    member.round()
    assert (member.waits_for, store.places) == ("Kafka does not answer", {P0: (3, 4)})
    log.name = "cluster/payments"
    for _ in range(3):
        member.round()
    assert store.places == {P0: (10, 5)}


def test_a_failing_partition_is_held_while_the_others_and_the_poll_go_on_and_then_goes_on_itself(clock: Clock) -> None:
    store, log, bad = Store(), Log({P0: made(8, "a"), P1: made(30, "b")}), Bad({"a4"})
    member = Consuming(log, store, GROUP, bad.book)
    log.assign(P0, P1)
    for _ in range(6):
        member.round()
    assert [result for result in store.results if result[0] == "a"] == made(4, "a"), "what came before it is stored"
    assert P0 in log.paused
    assert (member.held[P0].offset, member.held[P0].attempts) == (4, 1)
    assert "ValueError: a4" in member.held[P0].error
    assert len([result for result in store.results if result[0] == "b"]) == 18, "the other one goes on"
    waits = []
    for _ in range(8):
        before = member.held[P0].again_at
        waits.append(before - clock.now)
        clock.now = before
        member.round()
        assert member.held[P0].attempts == len(waits) + 1
    assert waits[0] < waits[1] < waits[2]
    assert max(waits) <= 30.0
    bad.clear()
    clock.now = member.held[P0].again_at
    for _ in range(3):
        member.round()
    assert [result for result in store.results if result[0] == "a"] == made(8, "a")
    assert (member.held, log.paused) == ({}, set())


def test_records_that_lie_behind_one_that_waits_are_never_worked_on_first(clock: Clock) -> None:
    store, log, bad = Store(), Log({P0: made(8, "a")}), Bad({"a1"})
    member = Consuming(log, store, GROUP, bad.book)
    log.assign(P0)
    member.round()
    # A client that hands out what it had fetched before it was told to stop.
    log.paused, log.positions[P0] = set(), 5
    member.round()
    assert store.results == ["a0"]
    bad.clear()
    clock.now += 60
    for _ in range(4):
        member.round()
    assert store.results == made(8, "a")


def test_a_member_that_does_not_know_that_it_lost_a_partition_stores_nothing(clock: Clock) -> None:
    store = Store()
    zombie_log, heir_log = Log({P0: made(9, "a")}), Log({P0: made(9, "a")})
    zombie, heir = Consuming(zombie_log, store, GROUP, Bad().book), Consuming(heir_log, store, GROUP, Bad().book)
    zombie_log.assign(P0)
    zombie.round()
    heir_log.assign(P0)
    heir.round()
    zombie.round()
    zombie.round()
    assert (zombie.fenced, zombie.stored, heir.stored) == (1, 3, 3)
    heir.round()
    assert store.results == made(9, "a")
    zombie_log.assign()
    zombie.round()
    assert zombie.fenced == 1, "it heard"


@pytest.mark.parametrize("rounds", range(1, 4))
def test_after_a_commit_that_nobody_heard_of_the_place_is_claimed_again(clock: Clock, rounds: int) -> None:
    store, log = Store(), Log({P0: made(9, "a"), P1: made(9, "b")})
    member = Consuming(log, store, GROUP, Bad().book)
    log.assign(P0, P1)
    for number in range(8):
        store.loses_commits = number == rounds
        member.round()
    assert sorted(store.results) == sorted([*made(9, "a"), *made(9, "b")])
    assert member.waits_for == ""


def test_slow_work_keeps_neither_the_poll_nor_the_place_waiting(clock: Clock) -> None:
    store, log = Store(), Log({P0: made(6, "a")})

    def book(record: Record, results: list[str]) -> None:
        clock.now += 0.7
        results.append((record.value or b"").decode())

    member = Consuming(log, store, GROUP, book)
    log.assign(P0)
    member.round()
    assert (store.results, store.places[P0], log.noted) == (made(2, "a"), (2, 1), {P0: 2})
    for _ in range(3):
        member.round()
    assert store.results == made(6, "a")


def test_a_silent_store_is_asked_until_it_answers(clock: Clock) -> None:
    store, log = Store(silent=3), Log({P0: made(3, "a")})
    member = Consuming(log, store, GROUP, Bad().book)
    log.assign(P0)
    member.round()
    assert (member.waits_for, store.results) == ("silent", [])
    for _ in range(4):
        member.round()
    assert (member.waits_for, store.results) == ("", made(3, "a"))
    assert log.polls == 5, "it kept its place in the group"


@pytest.mark.parametrize("seed", range(300))
def test_whatever_the_store_and_the_group_do_every_record_has_one_result_in_order(clock: Clock, seed: int) -> None:
    chance = random.Random(seed)
    values = {P0: made(12, "a"), P1: made(12, "b")}
    store, bad = Store(), Bad({chance.choice(values[P0]), chance.choice(values[P1])})
    logs = [Log(values), Log(values)]
    members = [Consuming(log, store, GROUP, bad.book) for log in logs]
    logs[0].assign(P0, P1)
    for _ in range(60):
        clock.now += chance.choice([0.0, 0.1, 5.0])
        happens = chance.random()
        if happens < 0.15:
            store.silent = chance.randint(1, 3)
        elif happens < 0.3:
            store.loses_commits = 1
        elif happens < 0.4:
            mine = [place for place in (P0, P1) if chance.random() < 0.5]
            # Each hears of it at once, or not at all: then it goes on as if it still had them.
            for log, places in zip(logs, (mine, {P0, P1} - set(mine)), strict=True):
                if chance.random() < 0.7:
                    log.assign(*places)
        chance.choice(members).round()
    bad.clear()
    store.silent = store.loses_commits = 0
    logs[0].assign(P0)
    logs[1].assign(P1)
    for _ in range(20):
        clock.now += 60
        for member in members:
            member.round()
    for start, partition in (("a", P0), ("b", P1)):
        assert [result for result in store.results if result[0] == start] == values[partition]


def test_a_new_assignment_goes_on_where_somebody_else_stopped(clock: Clock) -> None:
    store = Store(places={P0: (5, 4)})
    log = Log({P0: made(9, "a")})
    member = Consuming(log, store, GROUP, Bad().book)
    log.assign(P0)
    for _ in range(3):
        member.round()
    assert store.results == made(9, "a")[5:]
    assert store.places[P0] == (9, 5)
