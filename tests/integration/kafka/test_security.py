"""A broker that wants TLS and a login: librdkafka and Spark's connector reach it by one and the same configuration."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from zerotail.config import load
from zerotail.core.identity import Epoch, PartitionNumber, ProducerNumber, Serial, SiteName, TopicName
from zerotail.core.record import digest_of
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.kafka.admin import wait_until_brokers_live
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.cursor import Cursor
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.kafka.producer import RecordSender
from zerotail.lab.broker import format_broker, new_cluster_id, start_broker
from zerotail.lab.layout import OUTSIDE, LabSettings, plan_layout, ports_needed
from zerotail.lab.ports import release_ports, reserve_ports
from zerotail.lab.up import take_down
from zerotail.ports import Batch, Done, Polled, PollRecords, SendRecords
from zerotail.running.prepare import cluster_of

USER, PASSWORD = "zerotail", 'quo"ted \\ secret'
TOPIC, ZERO = TopicName("guarded"), PartitionNumber(0)
COUNT = 50
GUARDED = """
listener.security.protocol.map=LOCAL:PLAINTEXT,ACROSS:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.across.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.across.ssl.keystore.type=PEM
listener.name.across.ssl.keystore.location=broker.pem
"""


@dataclass(frozen=True)
class Guarded:
    """A broker behind TLS and a login, and the folder with its certificate."""

    bootstrap: str
    folder: Path

    def cluster(self, password: str = PASSWORD, authority: str = "authority.pem") -> Cluster:
        """How a site's configuration leads there."""
        (self.folder / "password").write_text(password)
        (self.folder / "password").chmod(0o600)
        settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": "${file:password}",
            "ssl.ca.location": str(self.folder / authority),
        }
        content = {
            "name": "guarded",
            "sites": {
                "east": {
                    "kafka": {"bootstrap": self.bootstrap, "settings": settings},
                    "database": {"dsn": "host=127.1.0.9 dbname=core"},
                },
                "west": {"kafka": {"bootstrap": "127.2.0.1:9092"}, "database": {"dsn": "host=127.2.0.9 dbname=core"}},
            },
        }
        file = self.folder / "zerotail.yaml"
        file.write_text(yaml.safe_dump(content))
        return cluster_of(load(file), SiteName("east"))


def make_certificate(folder: Path, name: str) -> None:
    """A certificate that vouches for itself, and its key."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"),
        ],
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One node of its own, with one user."""
    folder = tmp_path_factory.mktemp("guarded") / "lab"
    folder.mkdir()
    settings = LabSettings(folder)
    layout = plan_layout(settings, reserve_ports(ports_needed(settings), folder))
    (place,) = layout.cluster(OUTSIDE)
    format_broker(layout, place, new_cluster_id())
    node = layout.folder_of(place.part)
    make_certificate(folder, "authority")
    make_certificate(folder, "stranger")
    (node / "broker.pem").write_text((folder / "authority.key").read_text() + (folder / "authority.pem").read_text())
    with (node / "server.properties").open("a") as properties:
        properties.write(GUARDED)
    try:
        start_broker(layout, place)
        local = f"127.0.0.1:{place.port}"
        wait_until_brokers_live(local, 1, Deadline.after(60))
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(USER, credential, PASSWORD.encode())
        client = AdminClient({"bootstrap.servers": local})
        client.alter_user_scram_credentials([wanted])[USER].result(30)
        yield Guarded(f"127.0.0.1:{place.across_port}", folder)
    finally:
        take_down(folder)
        release_ports(folder)


def records() -> Batch:
    values = [b"record %d" % number for number in range(COUNT)]
    serials = [Serial(number + 1) for number in range(COUNT)]
    return Batch(
        [ProducerNumber(1)] * COUNT, serials, [Epoch(1)] * COUNT, [digest_of(value) for value in values], values
    )


def read_by_librdkafka(cluster: Cluster) -> list[bytes]:
    cursor = Cursor(cluster, TOPIC, ZERO)
    found: list[bytes] = []
    hint = None
    deadline = Deadline.after(60)
    while len(found) < COUNT and not deadline.passed:
        polled = cursor.poll(PollRecords(TOPIC, ZERO, hint, COUNT))
        if isinstance(polled, Polled):
            found += polled.batch.values
            hint = polled.hint
    cursor.close()
    return found


def read_by_spark(spark: SparkSession, cluster: Cluster) -> list[bytes]:
    read = spark.read.format("kafka").options(subscribe=TOPIC, startingOffsets="earliest")
    rows = read.options(**cluster.for_connector()).load().select("offset", "value").collect()
    return [bytes(row["value"]) for row in sorted(rows, key=lambda row: row["offset"])]


@pytest.mark.servers
def test_both_clients_reach_a_guarded_broker_by_one_configuration(guarded: Guarded, spark: SparkSession) -> None:
    cluster = guarded.cluster()
    assert ensure_topic(admin_client(cluster), TOPIC, TopicSettings(1, 1)) == 1
    sender = RecordSender(cluster)
    assert isinstance(sender.send(SendRecords(TOPIC, ZERO, records())), Done), sender.reason
    sender.close()
    assert read_by_librdkafka(cluster) == read_by_spark(spark, cluster) == list(records().values)


@pytest.mark.nightly
def test_both_clients_say_that_a_password_is_wrong(guarded: Guarded, spark: SparkSession) -> None:
    cluster = guarded.cluster("guessed")
    with pytest.raises(Unavailable, match=r"Authentication failed.*invalid credentials"):
        ensure_topic(admin_client(cluster), TOPIC, TopicSettings(1, 1))
    sender = RecordSender(cluster)
    assert not isinstance(sender.send(SendRecords(TOPIC, ZERO, records())), Done)
    assert "invalid credentials" in sender.reason
    with pytest.raises(Py4JJavaError, match=r"SaslAuthenticationException.*invalid credentials"):
        read_by_spark(spark, cluster)


@pytest.mark.nightly
def test_both_clients_refuse_a_broker_that_nobody_vouches_for(guarded: Guarded, spark: SparkSession) -> None:
    cluster = guarded.cluster(authority="stranger.pem")
    with pytest.raises(Unavailable, match="certificate verify failed"):
        ensure_topic(admin_client(cluster), TOPIC, TopicSettings(1, 1))
    with pytest.raises(Py4JJavaError, match="SslAuthenticationException"):
        read_by_spark(spark, cluster)
