"""Results are exactly once with real Kafka and PostgreSQL, whatever becomes of the members."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from support.consumers import PATIENCE_SECONDS, SESSION_MS, Consumers
from support.kafka_faults import TopicAtSite
from support.seeds import seed_of
from zerotail.consume import consume
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout

SEED = seed_of("consume")
_names = itertools.count(1)


@pytest.fixture
def group(lab: Layout) -> Iterator[Consumers]:
    consumers = Consumers(lab, f"consumed-{next(_names)}-{os.getpid()}")
    yield consumers
    consumers.end()


@pytest.mark.servers
def test_members_that_come_and_go_share_the_work_and_nothing_is_done_twice(group: Consumers) -> None:
    group.send(2000)
    first = group.start()
    group.wait_for_results(2000)
    second = group.start()
    wait_until("both work", lambda: _both_work(group, first, second), Deadline.after(PATIENCE_SECONDS))
    group.kill(first)
    group.send(400)
    group.wait_for_results(group.sent)
    group.require_exactly_once()


def _both_work(group: Consumers, *pids: int) -> bool:
    group.send(40)
    return set(pids) <= group.workers()


@pytest.mark.servers
def test_a_place_of_another_log_is_refused_and_nobody_is_fenced(group: Consumers) -> None:
    group.send(200)
    member = group.start()
    group.wait_for_results(200)
    group.kill(member)
    places = group.sql(("select * from zerotail_place where topic = %s order by partition", group.name))
    # The topic is made anew, and grows past the places: read from there, records would be skipped without a word.
    TopicAtSite(group.lab, group.name, group.partitions).make_anew()
    for record in range(400):
        group.send(1, f"new {record}")
    with pytest.raises(Refused, match="one of another log") as refused:
        consume(group.bootstrap, group.name, [group.name], group.dsn, lambda _record, _transaction: None)
    assert refused.value.code == "ZT921"
    assert group.sql(("select * from zerotail_place where topic = %s order by partition", group.name)) == places
    group.sql(("update zerotail_place set next_offset = null, log = null where topic = %s", group.name))
    group.start()
    group.wait_for_results(group.sent)


@pytest.mark.servers
@pytest.mark.parametrize("trouble", ["freeze", "slow"])
def test_a_member_that_lost_its_partition_without_knowing_stores_nothing(group: Consumers, trouble: str) -> None:
    limits = {"max.poll.interval.ms": str(SESSION_MS)}
    group.start(**limits)
    group.send(40)
    group.wait_for_results(40)
    group.send(1, f"{trouble} {group.name}", partition=0)
    group.send(200)
    wait_until(
        "the first member has it in hand",
        lambda: group.sql(("select 1 from met where name = %s", group.name)),
        Deadline.after(PATIENCE_SECONDS),
    )
    group.start(**limits)
    group.wait_for_results(group.sent)
    os.kill(group.members[0], signal.SIGCONT)
    # The one that comes back takes part again, as a member like any other.
    wait_until("it works again", lambda: _works_again(group, group.members[0]), Deadline.after(PATIENCE_SECONDS))
    group.wait_for_results(group.sent)
    group.require_exactly_once()


def _works_again(group: Consumers, pid: int) -> bool:
    before = group.sql(("select coalesce(max(number), 0) from result",))[0][0]
    group.send(40)
    group.wait_for_results(group.sent)
    return bool(group.sql(("select 1 from result where worker = %s and number > %s limit 1", pid, before)))


@pytest.mark.servers
def test_a_partition_that_fails_is_held_while_the_others_go_on_and_goes_on_when_it_can(group: Consumers) -> None:
    group.start()
    group.send(40)
    group.wait_for_results(40)
    group.send(1, f"bad {group.name}", partition=2)
    group.send(400)
    group.wait_for_results(40 + 300)
    failing = ("select count(*) from result where topic = %s and partition = 2", group.name)
    for _ in range(3):
        group.send(4)
    group.wait_for_results(40 + 300 + 9)
    assert group.sql(failing) == [(10,)], "nothing behind the record that fails"
    group.sql(("insert into allowed values (%s)", group.name))
    group.wait_for_results(group.sent)
    group.require_exactly_once()


@pytest.mark.servers
def test_a_held_partition_that_comes_back_to_a_member_goes_on_when_it_can(group: Consumers) -> None:
    first = group.start()
    group.send(1, f"bad {group.name}", partition=2)
    group.send(40)
    group.wait_for_results(30)
    second = group.start()
    wait_until("both work", lambda: _both_work(group, first, second), Deadline.after(PATIENCE_SECONDS))
    group.kill(second)
    group.sql(("insert into allowed values (%s)", group.name))
    group.wait_for_results(group.sent)
    group.require_exactly_once()


@pytest.mark.servers
def test_a_database_that_dies_and_comes_back_has_every_result_once(group: Consumers, lab: Layout) -> None:
    group.start()
    group.send(400)
    group.wait_for_results(400)
    with load(group):
        group.wait_for_results(800)
        assert kill_target(lab, "east.postgres").bit
        start_target(lab, "east.postgres")
        group.wait_for_results(group.results() + 400)
    group.wait_for_results(group.sent)
    group.require_exactly_once()


@contextmanager
def load(group: Consumers) -> Iterator[None]:
    """Records all the time, as long as the block runs."""
    stop = Event()

    def send() -> None:
        while not stop.wait(0.05):
            group.send(40)

    sending = Thread(target=send)
    sending.start()
    try:
        yield
    finally:
        stop.set()
        sending.join()


def kill_again_and_again(group: Consumers, kills: int) -> None:
    chance = random.Random(SEED)
    # A fixed name lets a member that comes back have its partitions at once, as a restarted service would.
    names = {group.start(**{"group.instance.id": name}): name for name in ("one", "two")}
    group.send(40)
    group.wait_for_results(40)
    with load(group):
        for _ in range(kills):
            victim = chance.choice(sorted(names))
            name = names.pop(victim)
            group.kill(victim)
            before = group.results()
            names[group.start(**{"group.instance.id": name})] = name
            group.wait_for_results(before + 1)
            time.sleep(chance.uniform(0.0, 0.2))  # when it is killed is left to chance
    group.wait_for_results(group.sent)
    group.require_exactly_once()


@pytest.mark.servers
def test_a_service_that_is_killed_under_load_has_every_result_once(group: Consumers) -> None:
    kill_again_and_again(group, 12)


@pytest.mark.nightly
def test_a_service_that_is_killed_a_hundred_times_under_load_has_every_result_once(group: Consumers) -> None:
    kill_again_and_again(group, 100)
