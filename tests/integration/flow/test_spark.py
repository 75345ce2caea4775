"""The normal day on Spark: producers and stages as streaming queries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.flow import EAST, PATIENCE_SECONDS, System, new_system
from zerotail.core.identity import PartitionNumber
from zerotail.core.receiver import ReceiverClass
from zerotail.deadline import Deadline, wait_until
from zerotail.flow.emit import Sender, emit
from zerotail.flow.stage import Place, place_of
from zerotail.kafka.log import admin_client, log_identity
from zerotail.lab.layout import Layout
from zerotail.ports import HeadRead, ReadHead
from zerotail.spark.producer_query import start_producer_query
from zerotail.spark.session import start_session
from zerotail.spark.stage_query import FROM_THE_BEGINNING, StageTask, read_records, start_stage_query
from zerotail.wiring import SiteAdapters

pytestmark = pytest.mark.servers


def places_of(system: System) -> dict[PartitionNumber, Place]:
    adapters = SiteAdapters(system.adapters)
    found: dict[PartitionNumber, Place] = {}
    for partition in system.stages:
        read = adapters.carry_out(ReadHead(system.stage, partition))
        assert isinstance(read, HeadRead)
        found[partition] = place_of(read)
    adapters.close()
    return found


def test_instructions_pass_through_spark_once_and_in_order(
    lab: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's workers import the handler by its name, as they would a user's.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    system = new_system(lab, "spark", 11, partitions=2)
    system.insert(2000)
    spark = start_session("zerotail test")
    queries = []
    try:
        for producer in system.producers:
            query = start_producer_query(
                spark,
                dsn=system.adapters.dsn,
                bootstrap=system.adapters.bootstrap,
                producer=producer,
                topic=system.topic,
                consumer=system.stage,
                partitions=system.partitions,
                transform=None,
                checkpoint=str(tmp_path / f"producer-{producer}"),
            )
            queries.append(query)
        log = log_identity(admin_client(system.adapters.bootstrap), system.topic)
        records = read_records(
            spark,
            {"kafka.bootstrap.servers": system.adapters.bootstrap},
            system.topic,
            dict.fromkeys(system.stages, FROM_THE_BEGINNING),
        )
        applied: list[int] = []
        queries.append(
            start_stage_query(
                records,
                StageTask(system.stages, system.adapters, log),
                places_of(system),
                str(tmp_path / "stage"),
                lambda _, taken: applied.append(taken.applied),
            )
        )
        senders = [lambda lane=lane: emit(Sender(lane, ReceiverClass.R2, EAST, window=1000)) for lane in system.lanes]
        with system.running(*senders) as ended:
            deadline = Deadline.after(PATIENCE_SECONDS)
            wait_until("the first arrived", lambda: system.accepted() == 8000 or ended, deadline)
            system.insert(500)
            wait_until("the rest, too", lambda: system.accepted() == 10_000 or ended, deadline)
            assert ended == []
        assert [query.exception() for query in queries] == [None, None, None]
        # A message may arrive outside before the driver has heard of the batch it came from.
        wait_until("the driver has heard of every batch", lambda: sum(applied) == 10_000, deadline)
    finally:
        for query in queries:
            query.stop()
        spark.stop()
    system.require_exactly_once(10_000)
