"""Kafka is a cache: whatever happens to it, the database sends again what is missing, and nothing happens twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.kafka_faults import Kept, TopicAtSite, wipe_kafka
from support.running import Running, trickle
from zerotail.core.identity import Serial
from zerotail.core.installation import NO_MARK, Installation
from zerotail.core.record import HEADER_BYTES, HEADER_NAME, Header, digest_of, encode
from zerotail.deadline import Deadline
from zerotail.lab.receiver import ReceiverControl

LOAD = 1500
"""Of each producer in each partition: with what the stage may owe, most of it waits in Kafka."""

MOST_TIMES = 3
"""How often a row may be sent where Kafka lost it once."""


def topic_of(system: Running) -> TopicAtSite:
    return TopicAtSite(system.lab, system.topic, system.partitions)


def rows_of(count: int) -> int:
    """Rows of the two producers in the two partitions."""
    return 4 * count


def hold_back(system: Running) -> None:
    """Let the receiver take nothing, and records pile up in Kafka until the stage takes no more."""
    _receiver(system).misbehave(unavailable=True, deadline=Deadline.after(10))
    before = system.counted("producer", "sent")
    system.insert(LOAD)
    system.wait("all is sent", lambda: system.counted("producer", "sent") >= before + rows_of(LOAD))
    system.wait("the stage waits", lambda: {one["doing"] for one in system.words("stage").values()} == {"waiting"})


def let_go(system: Running) -> None:
    _receiver(system).behave(deadline=Deadline.after(10))


def _receiver(system: Running) -> ReceiverControl:
    return ReceiverControl(system.lab.receiver_control_port)


@pytest.mark.nightly
def test_a_cluster_wiped_under_load_is_filled_again_from_the_database(system: Running) -> None:
    before, rows = system.counted("producer", "sent"), system.expected
    hold_back(system)
    with trickle(system):
        wipe_kafka(system.lab)
        let_go(system)
        system.wait_for_progress(rows_of(LOAD))
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert topic_of(system).count() > rows_of(LOAD) // 2, "the fault did not bite"
    assert system.counted("producer", "sent") - before <= MOST_TIMES * (system.expected - rows)


@pytest.mark.servers
def test_a_topic_that_lost_its_tail_while_producers_are_idle_gets_it_again(system: Running) -> None:
    topic = topic_of(system)
    before = system.counted("producer", "sent")
    hold_back(system)
    lying = topic.read()
    topic.make_anew(lying[: len(lying) // 4])
    let_go(system)
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert system.counted("producer", "sent") - before <= MOST_TIMES * rows_of(LOAD)


@pytest.mark.servers
def test_retention_that_runs_ahead_of_the_stage_costs_nothing_but_time(system: Running) -> None:
    before = system.counted("producer", "sent")
    hold_back(system)
    topic_of(system).forget_everything()
    let_go(system)
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert system.counted("producer", "sent") - before <= MOST_TIMES * rows_of(LOAD)


@pytest.mark.servers
def test_repeats_are_dropped_and_counted(system: Running) -> None:
    topic = topic_of(system)
    lying = topic.read()
    before, written = system.counted("stage", "repeats"), topic.count()
    topic.write(lying)
    system.wait("they are counted", lambda: system.counted("stage", "repeats") >= before + len(lying))
    system.insert(20)
    system.wait_until_all_arrived()
    system.require_exactly_once()
    # The new ones may come twice on a busy machine: whoever is not taken for two seconds is sent again.
    new = topic.count() - written - len(lying)
    assert rows_of(20) <= new < rows_of(20) + len(lying), "a repeat makes nobody send again"


@pytest.mark.servers
def test_foreign_records_are_dropped_and_counted(system: Running) -> None:
    topic = topic_of(system)
    before = system.counted("stage", "foreign")
    strangers = [
        Kept(partition, b"{}", headers)
        for partition in range(system.partitions)
        for headers in ([], [("other", b"x")], [(HEADER_NAME, b"short")], [(HEADER_NAME, bytes(HEADER_BYTES + 1))])
    ]
    topic.write(strangers)
    system.insert(20)
    system.wait_until_all_arrived()
    system.wait("they are counted", lambda: system.counted("stage", "foreign") == before + len(strangers))
    system.require_exactly_once()
    shown = sum(word["counters"]["foreign"] for word in system.words("stage").values())
    assert shown == before + len(strangers)


@pytest.mark.servers
def test_records_of_another_installation_are_left_out_counted_and_named(system: Running) -> None:
    """They bear the very numbers that come next here, as those of a former life do."""
    topic = topic_of(system)
    ((number, epoch, identity),) = system.sql(
        "select producer, (select max(epoch) from zerotail.epoch), (select identity from zerotail.installation) "
        "from zerotail.producer where name = %s",
        f"cards-{system.name}",
    )
    before = system.counted("stage", "other_installation")
    value = b'{"account": "phantom", "amount": 1000000}'
    header = Header(epoch, number, Serial(system.inserted["cards", 0] + 1), digest_of(value))
    marks = [NO_MARK, Installation(bytes(identity)).mark ^ 1]
    topic.write([Kept(0, value, [(HEADER_NAME, encode(replace(header, mark=mark)))]) for mark in marks])
    system.wait("they are counted", lambda: system.counted("stage", "other_installation") == before + len(marks))
    system.insert(20)
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert system.sql("select from zerotail.state where key = 'phantom'") == []
    (trouble,) = [one for one in system.status()["troubles"] if "another installation" in one]
    assert f"stage {system.stage_name}/0 at east has left out {before + len(marks)} records" in trouble


@pytest.mark.servers
def test_a_record_that_this_version_cannot_read_stops_its_partition_and_no_other(system: Running) -> None:
    topic = topic_of(system)
    (_, behind), _ = topic.bounds().values()
    topic.write([Kept(0, b"{}", [(HEADER_NAME, bytes([9]) + bytes(HEADER_BYTES - 1))])])
    system.wait("the partition has stopped", lambda: system.words("stage")[0]["doing"] == "stopped")
    before = system.accepted()
    system.insert(100)
    system.wait("the other one goes on", lambda: system.accepted() == before + rows_of(100) // 2)
    said = system.words("stage")
    assert said[0]["reason"].startswith(f"offset {behind} of the topic: a record has a zt header of version 9")
    assert said[1]["doing"] == "working"
    # Whoever cannot bring a version that reads it makes the topic anew.
    topic.make_anew()
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert system.words("stage")[0]["doing"] == "working"
