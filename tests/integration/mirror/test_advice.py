"""Four bottlenecks are made, and the advice names each of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.copiers import orders
from support.mirrors import make_topic
from zerotail.deadline import Deadline
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.copy import WRITING, PartitionCopier
from zerotail.kafka.feed import Feeder
from zerotail.kafka.places import Places
from zerotail.kafka.reading import READING
from zerotail.lab.layout import Layout
from zerotail.lab.link import LinkControl
from zerotail.mirror.advice import Measured, Verdict, advise

pytestmark = pytest.mark.nightly

SLOW_BYTES_PER_SECOND = 1_000_000
WATCHED_SECONDS = 6.0


@pytest.fixture
def link(lab: Layout) -> LinkControl:
    """The link, healed behind the test by `lab`."""
    return LinkControl(lab.link_control_port)


def loaded(lab: Layout, topic: str, *, count: int = 60_000, size: int = 500, batch: int = 10_000) -> None:
    make_topic(lab, "east", topic)
    feeder = Feeder(Cluster(lab.bootstrap("east")), topic, batch_num_messages=batch)
    for number in range(count):
        feeder.send(b"%0*d" % (size, number), partition=0)
    feeder.finish()


def verdict(
    lab: Layout,
    topic: str,
    *,
    source_from: str = "east",
    target_from: str = "west",
    source: dict[str, str] | None = None,
    target: dict[str, str] | None = None,
) -> Verdict:
    """Copy for some seconds with these settings, over the link or beside it, and ask."""
    (order,) = orders(lab.bootstrap("east"), lab.bootstrap("west"), topic, 1, "a", most=50_000)
    here = Cluster(lab.bootstrap("east", seen_from=source_from), tuple((source or {}).items()))
    there = Cluster(lab.bootstrap("west", seen_from=target_from), tuple((target or {}).items()))
    copier = PartitionCopier(replace(order, source=here, target=there))
    end = Places(order.source, "east").ends([(order.topic, order.partition)])[order.topic, order.partition]
    copier.work(0, 0.1)
    done = copier.work(end, WATCHED_SECONDS)
    copier.close()
    settings = {name: str(value) for name, value in {**READING, **WRITING, **(source or {}), **(target or {})}.items()}
    return advise(
        Measured(
            WATCHED_SECONDS,
            # What is in the way of the next records, and not how fast these came, is the question.
            0,
            end - done.next_offset,
            done.reading_seconds,
            done.sending_seconds,
            done.metrics,
            settings,
        )
    )


def test_a_slow_source_is_the_consumers_bottleneck(lab: Layout, link: LinkControl) -> None:
    loaded(lab, "slow-source")
    link.throttle(SLOW_BYTES_PER_SECOND, deadline=Deadline.after(10))
    found = verdict(lab, "slow-source", source_from="west")
    assert (found.side, found.cause) == ("consumer", "slow source"), found


def test_a_slow_target_is_the_producers_bottleneck(lab: Layout, link: LinkControl) -> None:
    loaded(lab, "slow-target")
    link.throttle(SLOW_BYTES_PER_SECOND, deadline=Deadline.after(10))
    found = verdict(lab, "slow-target", target_from="east")
    assert (found.side, found.cause) == ("producer", "slow target"), found


def test_tiny_batches_are_told_with_linger_and_batch_size(lab: Layout, link: LinkControl) -> None:
    loaded(lab, "tiny-batches")
    link.delay(5, deadline=Deadline.after(10))
    found = verdict(lab, "tiny-batches", target_from="east", target={"batch.num.messages": "1", "linger.ms": "0"})
    assert (found.side, found.cause) == ("producer", "tiny batches"), found
    assert [one.setting for one in found.advice] == ["linger.ms", "batch.size", "batch.num.messages"]


def test_tiny_fetches_are_told_with_the_fetch_maximum(lab: Layout, link: LinkControl) -> None:
    loaded(lab, "tiny-fetches", count=20_000, batch=2)
    link.delay(5, deadline=Deadline.after(10))
    found = verdict(lab, "tiny-fetches", source_from="west", source={"fetch.message.max.bytes": "1000"})
    assert (found.side, found.cause) == ("consumer", "tiny fetches"), found
    assert found.advice[0].setting == "fetch.message.max.bytes"
