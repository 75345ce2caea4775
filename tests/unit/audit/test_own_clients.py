"""Our own clients are audited with what they really run with, Spark's reader included."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from unit.audit.seen import found
from zerotail.audit.facts import Settings, SparkFacts
from zerotail.audit.own_clients import own_clients
from zerotail.config import load
from zerotail.config.client import FIXED_SETTINGS
from zerotail.kafka.cluster import Cluster
from zerotail.spark.reader_options import FIXED, reader_options

pytestmark = pytest.mark.fast

CONFIG = """
name: shop
sites:
  east:
    kafka: {bootstrap: "127.0.0.1:1", settings: {fetch.wait.max.ms: "500", request.timeout.ms: "7000"}}
    database: {dsn: "host=127.0.0.1 port=1 dbname=core"}
  west: {kafka: {bootstrap: "127.0.0.1:2"}, database: {dsn: "host=127.0.0.1 port=2 dbname=core"}}
prefer: east
topics: {payments: {partitions: 1}}
producers: {cards: {topic: payments}}
stages: {settle: {consumes: payments, handler: "zerotail.testing:Handler", emits: [out]}}
channels: {out: {kind: kafka, bootstrap: "127.0.0.1:3", topic: outside, receiver: R1}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "zerotail.yaml"
    file.write_text(CONFIG)
    return file


def test_nothing_is_found_about_any_client_of_ours(config: Path) -> None:
    clients = list(own_clients(load(config)))
    assert {client.name for client in clients} == {
        *(f"our {kind} at {site}" for kind in ("producers", "readers", "stages") for site in ("east", "west")),
        "our writer of channel out",
        "our reader of channel out",
    }
    assert [found(client) for client in clients] == [{}] * len(clients)


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("failOnDataLoss", "false", "spark-data-loss"),
        ("minPartitions", "8", "spark-min-partitions"),
        ("kafka.isolation.level", "read_uncommitted", "spark-isolation"),
    ],
)
def test_an_option_of_our_stages_that_were_wrong_would_be_found(
    config: Path, option: str, value: str, rule: str
) -> None:
    (stages,) = [one for one in own_clients(load(config), "east") if isinstance(one, SparkFacts)]
    wrong = replace(stages, settings=Settings({**stages.settings.values, option: value}))
    assert set(found(wrong)) == {rule}


def test_what_the_stages_rest_on_cannot_be_overlaid() -> None:
    given = Cluster("127.0.0.1:1", (("request.timeout.ms", "7000"), ("isolation.level", "read_uncommitted")))
    options = reader_options(given)
    assert {name: options[name] for name in FIXED} == FIXED
    assert options["kafka.request.timeout.ms"] == "7000"
    assert not {"minPartitions", "maxRecordsPerPartition"} & set(options)


def test_spark_reads_with_the_isolation_that_the_configuration_speaks_of() -> None:
    assert FIXED["kafka.isolation.level"] == FIXED_SETTINGS["isolation.level"]
