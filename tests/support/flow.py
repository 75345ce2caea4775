"""A small system for tests of the flow: two producers, one topic, a stage that keeps balances, a bank outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, PartitionNumber, ProducerNumber, SiteName, StageName, TopicName
from zerotail.deadline import Deadline
from zerotail.flow.stage import Stage
from zerotail.handler import Emission, Given, Record, State
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, create_topic
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import PartitionTotals
from zerotail.ports import Story
from zerotail.postgres.connection import session
from zerotail.postgres.journal import create_head
from zerotail.wiring import AdapterSettings, SiteAdapters, Stopped, drive

EAST = SiteName("east")
PATIENCE_SECONDS = 150.0
_LAST = "select coalesce(max(serial), 0) from zerotail.instruction where producer = %s and partition = %s"
_INSERT = """
insert into zerotail.instruction (producer, partition, serial, id, value)
select %s, %s, n, n::text || '/' || %s,
       convert_to(json_build_object('account', 'account ' || n %% 97, 'amount', n)::text, 'utf8')
from generate_series(%s::bigint, %s::bigint) as n
"""


@dataclass(frozen=True)
class Settle:
    """Adds an amount to an account and tells the bank."""

    bank: str
    version: str = "1"

    def keys(self, record: Record) -> list[str]:
        return [record.value["account"]]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        account = record.value["account"]
        state[account] = state.get(account, 0) + record.value["amount"]
        return [Emission(self.bank, {"account": account, "balance": state[account], "position": record.position})]


@dataclass(frozen=True)
class System:
    """One such system in a lab, apart from every other by its names and numbers."""

    lab: Layout
    name: str
    producers: tuple[ProducerNumber, ProducerNumber]
    partitions: int

    @property
    def topic(self) -> TopicName:
        return TopicName(f"topic-{self.name}")

    @property
    def stage(self) -> StageName:
        return StageName(f"stage-{self.name}")

    @property
    def bank(self) -> ChannelName:
        return ChannelName(f"bank-{self.name}")

    @property
    def stages(self) -> dict[PartitionNumber, Stage]:
        handler = Settle(self.bank)
        return {
            PartitionNumber(number): Stage(
                self.stage, PartitionNumber(number), self.topic, handler, "1", {self.bank: 1}
            )
            for number in range(self.partitions)
        }

    @property
    def lanes(self) -> list[Lane]:
        return [Lane(self.bank, PartitionNumber(number)) for number in range(self.partitions)]

    @property
    def adapters(self) -> AdapterSettings:
        return AdapterSettings(
            EAST,
            dsn(self.lab.database("east")),
            dsn(self.lab.database("west"), seen_from="east"),
            Cluster(self.lab.bootstrap("east")),
            ((self.bank, f"http://127.0.0.1:{self.lab.receiver_port}"),),
        )

    def insert(self, count: int) -> None:
        """So many instructions more of each producer, in each partition."""
        with session(self.adapters.dsn, Deadline.after(PATIENCE_SECONDS)) as primary:
            for producer in self.producers:
                for partition in range(self.partitions):
                    row = primary.execute(_LAST, (producer, partition)).fetchone()
                    assert row is not None
                    primary.execute(_INSERT, (producer, partition, partition, row[0] + 1, row[0] + count))

    def totals(self) -> list[PartitionTotals]:
        """What the receiver says, partition by partition."""
        control = ReceiverControl(self.lab.receiver_control_port)
        found = control.totals(deadline=Deadline.after(PATIENCE_SECONDS)).partitions
        return [totals for totals in found if totals.channel == self.bank]

    def accepted(self) -> int:
        return sum(totals.accepted for totals in self.totals())

    def require_exactly_once(self, count: int) -> None:
        """The receiver has `count` messages, in order, none twice, none missing."""
        totals = self.totals()
        assert sum(one.accepted for one in totals) == count
        for one in totals:
            assert (one.accepted, one.missing, one.out_of_order) == (one.distinct, 0, 0)
            assert one.different_bytes == 0

    @contextmanager
    def running(self, *stories: Callable[[], Story[Any]]) -> Iterator[list[object]]:
        """Each story in a thread of its own until the block ends; how those ended that ended before."""
        stop = Event()
        ended: list[object] = []

        def run(make: Callable[[], Story[Any]]) -> None:
            own = SiteAdapters(self.adapters)
            try:
                ended.append(drive(make(), own, stop))
            except Stopped:
                return
            except Exception as error:
                ended.append(error)
                raise
            finally:
                own.close()

        threads = [Thread(target=run, args=(story,)) for story in stories]
        for thread in threads:
            thread.start()
        try:
            yield ended
        finally:
            stop.set()
            for thread in threads:
                thread.join(PATIENCE_SECONDS)


def new_system(lab: Layout, name: str, first_producer: int, partitions: int) -> System:
    """Make the topic, the producers and the heads."""
    system = System(lab, name, (ProducerNumber(first_producer), ProducerNumber(first_producer + 1)), partitions)
    create_topic(admin_client(Cluster(lab.bootstrap("east"))), system.topic, TopicSettings(partitions, 1))
    with session(system.adapters.dsn, Deadline.after(PATIENCE_SECONDS)) as primary:
        for producer in system.producers:
            primary.execute(
                "insert into zerotail.producer (producer, name, topic, consumer) values (%s, %s, %s, %s)",
                (producer, f"{name}-{producer}", system.topic, system.stage),
            )
        for number in range(partitions):
            create_head(primary, system.stage, PartitionNumber(number), system.producers)
    return system
