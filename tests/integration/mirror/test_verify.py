"""`mirror verify` finds what is wrong with a copy, and nothing where nothing is."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from support.copiers import copy_all, flow_of, orders
from support.mirrors import make_topic, read, write
from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.core.provenance import HEADER_NAME, Origin, stamper
from zerotail.kafka.catalogue import id_bytes
from zerotail.kafka.cluster import Cluster
from zerotail.lab.layout import Layout
from zerotail.mirror.comparison import Compared
from zerotail.mirror.verification import verify_flow
from zerotail.spark.mirror_verify import comparer

pytestmark = pytest.mark.nightly


def compared(lab: Layout, spark: SparkSession, topic: str) -> Compared:
    flow = flow_of()
    here, there = (Cluster(lab.bootstrap(site)) for site in ("east", "west"))
    found = verify_flow(flow, here, there, comparer(spark, flow, here, there))
    return next(one for one in found if one.topic == topic)


def planted(lab: Layout, topic: str, offset: int, value: bytes, key: bytes | None = None) -> None:
    """Write what looks like a copy, with nothing of a mirror but its header."""
    (order,) = orders(lab.bootstrap("east"), lab.bootstrap("west"), topic, 1, "planted")
    stamp = stamper(Origin("east", TopicName(topic), id_bytes(order.topic_id), PartitionNumber(0)))
    client = Producer({"bootstrap.servers": lab.bootstrap("west")})
    headers: Any = [(HEADER_NAME, stamp(offset))]
    client.produce(f"east.{topic}", value, key, 0, headers=headers)
    client.flush(10)


def filled(lab: Layout, topic: str, count: int = 50) -> None:
    make_topic(lab, "east", topic)
    write(lab, "east", topic, [b"%d" % number for number in range(count)])
    (order,) = orders(lab.bootstrap("east"), lab.bootstrap("west"), topic, 1, "a")
    copy_all(order)


def test_a_right_copy_agrees_with_its_source(lab: Layout, spark: SparkSession) -> None:
    filled(lab, "right")
    found = compared(lab, spark, "right")
    assert found.agrees
    assert (found.records, found.copies) == (50, 50)


def test_a_copy_that_stands_twice_is_counted_as_doubled_and_out_of_order(lab: Layout, spark: SparkSession) -> None:
    filled(lab, "doubled")
    planted(lab, "doubled", 7, b"7")
    found = compared(lab, spark, "doubled")
    assert (found.doubled, found.disordered, found.different) == (1, 1, 1)


def test_a_record_that_was_never_copied_is_lost(lab: Layout, spark: SparkSession) -> None:
    make_topic(lab, "east", "holes")
    write(lab, "east", "holes", [b"%d" % number for number in range(10)])
    key, value, *_ = read(lab, "east", "holes")[9]
    assert value is not None
    planted(lab, "holes", 9, value, key)
    (order,) = orders(lab.bootstrap("east"), lab.bootstrap("west"), "holes", 1, "b")
    assert copy_all(order).copied == 0  # the end says that everything is there
    found = compared(lab, spark, "holes")
    assert found.lost == 9
    assert found.different == 1  # it has another timestamp, and not the headers


def test_a_copy_of_a_record_that_the_source_never_had_is_foreign(lab: Layout, spark: SparkSession) -> None:
    make_topic(lab, "east", "phantom")
    client = Producer({"bootstrap.servers": lab.bootstrap("east"), "transactional.id": "phantom"})
    client.init_transactions(30)
    for committed in (True, False, True):
        client.begin_transaction()
        client.produce("phantom", b"x", partition=0)
        client.flush(10)
        client.commit_transaction(10) if committed else client.abort_transaction(10)
    (order,) = orders(lab.bootstrap("east"), lab.bootstrap("west"), "phantom", 1, "a")
    assert copy_all(order).copied == 2
    planted(lab, "phantom", 2, b"taken back")
    assert compared(lab, spark, "phantom").foreign == 1
