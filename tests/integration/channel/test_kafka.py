"""What is particular about a topic as a receiver."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from msgspec import structs

from integration.channel.test_contract import PATIENCE_SECONDS, batch, claim
from support.outside import TOPIC, Outside
from zerotail.channel.receiver import ClaimAnswer
from zerotail.core.gate import Release
from zerotail.core.identity import EmissionNumber, PartitionNumber
from zerotail.core.receiver import Welcome
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.layout import Layout
from zerotail.ports import Accepted, OutOfOrder, Refused, Unreachable

pytestmark = [pytest.mark.servers, pytest.mark.parametrize("outside", ["kafka-R0"], indirect=True)]


def test_an_end_that_retention_emptied_says_unknown_and_not_zero(outside: Outside, servers_outside: Layout) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 5))
        client = AdminClient({"bootstrap.servers": servers_outside.bootstrap("outside")})
        place = TopicPartition(TOPIC, lane.partition, -1)
        client.delete_records([place])[place].result()

        def answered() -> ClaimAnswer | None:
            """A busy broker may let the first question wait for too long, which says nothing."""
            answer = sender.claim(claim(lane, incarnation=2))
            return None if isinstance(answer, Unreachable) else answer

        deadline = Deadline.after(PATIENCE_SECONDS)
        assert wait_until("the topic says where it stands", answered, deadline) == Welcome(None, None)
        assert sender.send(batch(lane, 6, 7, incarnation=2)) == Accepted(EmissionNumber(7))
    assert outside.numbers(lane) == [6, 7]


def test_what_is_sent_exposed_has_a_second_header(
    outside: Outside, servers_outside: Layout, exposed_and_gated: tuple[Release, Release]
) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        for number, release in enumerate(exposed_and_gated, 1):
            sent = sender.send(structs.replace(batch(lane, number, number), release=release))
            assert sent == Accepted(EmissionNumber(number))
    reader = Consumer({"bootstrap.servers": servers_outside.bootstrap("outside"), "group.id": "exposed"})
    reader.assign([TopicPartition(TOPIC, lane.partition, 0)])
    try:
        read = reader.consume(2, PATIENCE_SECONDS)
        flags = [dict(message.headers() or ()).get("zt-exposed") for message in read]
    finally:
        reader.close()
    assert flags == [b"true", None]


def test_records_of_others_behind_our_last_one_do_not_hide_it(outside: Outside, servers_outside: Layout) -> None:
    lane = outside.lane()
    stranger = Producer({"bootstrap.servers": servers_outside.bootstrap("outside")})
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 3))
        for _ in range(700):
            stranger.produce(TOPIC, value=b"foreign", partition=lane.partition, headers={"zt-emission": b"{}"})
        assert stranger.flush(10) == 0
        welcome = sender.claim(claim(lane, incarnation=2))
    assert isinstance(welcome, Welcome)
    assert welcome.last == 3


def test_an_open_transaction_of_another_writer_is_waited_for(outside: Outside, servers_outside: Layout) -> None:
    lane = outside.lane()
    stranger = Producer({"bootstrap.servers": servers_outside.bootstrap("outside"), "transactional.id": "stranger"})
    stranger.init_transactions(10)
    stranger.begin_transaction()
    stranger.produce(TOPIC, value=b"foreign", partition=lane.partition)
    assert stranger.flush(10) == 0
    with closing(outside.open(lane, 0.5)) as hasty:
        assert hasty.claim(claim(lane)) == Unreachable()
    stranger.commit_transaction(10)
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        assert sender.claim(claim(lane)) == Welcome(EmissionNumber(0), None)


def test_what_a_dead_sender_left_open_is_never_seen(outside: Outside, servers_outside: Layout) -> None:
    lane = outside.lane()
    dead = Producer(
        {
            "bootstrap.servers": servers_outside.bootstrap("outside"),
            "transactional.id": f"zerotail/{lane.channel}/{lane.partition}/{lane.target}",
        }
    )
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 2))
    dead.init_transactions(10)
    dead.begin_transaction()
    dead.produce(TOPIC, value=b"half", partition=lane.partition, headers={"zt-emission": b"{}"})
    assert dead.flush(10) == 0
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        welcome = sender.claim(claim(lane, incarnation=2))
        assert isinstance(welcome, Welcome)
        assert welcome.last == 2
        assert sender.send(batch(lane, 3, 3, incarnation=2)) == Accepted(EmissionNumber(3))
    assert outside.numbers(lane) == [1, 2, 3]


def test_after_a_failure_nothing_is_sent_before_a_new_claim(outside: Outside) -> None:
    lane = outside.lane()
    with closing(outside.open(lane, 1.0)) as sender:
        sender.claim(claim(lane))
        sender.send(batch(lane, 1, 1))
        with outside.frozen():
            assert not isinstance(sender.send(batch(lane, 2, 2)), Accepted)
        assert sender.send(batch(lane, 2, 2)) == OutOfOrder(EmissionNumber(1))


def test_a_partition_that_the_topic_lacks_is_named(outside: Outside) -> None:
    lane = outside.lane()._replace(partition=PartitionNumber(4000))
    with closing(outside.open(lane, PATIENCE_SECONDS)) as sender:
        assert sender.claim(claim(lane)) == Refused("there is no partition 4000 of topic statements")
