"""Property files: how they are read, what a client runs with, and what is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.audit.seen import found, rules_of, unknown
from zerotail.audit.client_file import consumer_facts, flavour_of, parse_properties, producer_facts, read_properties
from zerotail.audit.facts import ConsumerFacts, Flavour, ProducerFacts, SparkFacts
from zerotail.errors import Misused

pytestmark = pytest.mark.fast

JAVA = "key.serializer=x\n"
LIBRDKAFKA = "message.timeout.ms=300000\n"
SAFE = "acks=all\nenable.idempotence=true\n"
SAFE_READER = "enable.auto.commit=false\nauto.offset.reset=none\nisolation.level=read_committed\n"
SPARK = "subscribe=payments\nstartingOffsets=earliest\nkafka.isolation.level=read_committed\n"

WRONG_PRODUCERS: list[tuple[str, set[str]]] = [
    (JAVA + SAFE, set()),
    (LIBRDKAFKA + SAFE, set()),
    (LIBRDKAFKA + "request.required.acks=-1\nenable.idempotence=true\n", set()),
    (SAFE, {"producer-in-flight"}),
    (SAFE + "max.in.flight.requests.per.connection=5\n", set()),
    (JAVA, {"producer-unsaid"}),
    (JAVA + "acks=1\n", {"producer-acks", "producer-idempotence", "producer-in-flight", "producer-unsaid"}),
    (JAVA + "acks=0\nenable.idempotence=true\n", {"producer-acks"}),
    (JAVA + "acks=all\nenable.idempotence=false\n", {"producer-idempotence", "producer-in-flight"}),
    (
        JAVA + "acks=all\nenable.idempotence=false\nmax.in.flight.requests.per.connection=1\n",
        {"producer-idempotence"},
    ),
    (
        JAVA + "acks=all\nretries=0\n",
        {"producer-idempotence", "producer-in-flight", "producer-retries", "producer-unsaid"},
    ),
    (JAVA + SAFE + "retries=9\n", {"producer-retries"}),
    (JAVA + SAFE + "retries=10\n", set()),
    (JAVA + SAFE + "delivery.timeout.ms=1\n", {"producer-delivery-timeout"}),
    (JAVA + SAFE + "delivery.timeout.ms=29999\n", {"producer-delivery-timeout"}),
    (JAVA + SAFE + "delivery.timeout.ms=30000\n", set()),
    (JAVA + SAFE + "max.block.ms=4999\n", {"producer-buffer"}),
    (JAVA + SAFE + "max.block.ms=5000\n", set()),
    (JAVA + "acks=all\n", {"producer-unsaid"}),
    (JAVA + "enable.idempotence=true\n", {"producer-unsaid"}),
    (
        JAVA + "acks=all\nenable.idempotence=false\nmax.in.flight.requests.per.connection=2\n",
        {"producer-idempotence", "producer-in-flight"},
    ),
    (JAVA + SAFE + "max.in.flight.requests.per.connection=6\n", {"producer-in-flight"}),
    (
        JAVA + "acks=all\nmax.in.flight.requests.per.connection=6\n",
        {"producer-idempotence", "producer-in-flight", "producer-unsaid"},
    ),
    (JAVA + SAFE + "delivery.timeout.ms=5000\n", {"producer-delivery-timeout"}),
    (LIBRDKAFKA + SAFE + "message.timeout.ms=0\n", set()),
    (JAVA + SAFE + "max.block.ms=0\n", {"producer-buffer"}),
    (JAVA + SAFE + "block.on.buffer.full=false\n", {"producer-buffer"}),
    (LIBRDKAFKA + "acks=all\n", {"producer-idempotence", "producer-in-flight", "producer-unsaid"}),
]
WRONG_CONSUMERS: list[tuple[str, set[str]]] = [
    (SAFE_READER, set()),
    (SAFE_READER + "auto.offset.reset=earliest\n", set()),
    ("group.id=g\n", {"consumer-auto-commit", "consumer-offset-reset", "consumer-isolation"}),
    ("group.id=g\nsasl.username=u\n", {"consumer-auto-commit", "consumer-offset-reset"}),
    (SAFE_READER + "auto.offset.reset=LATEST\n", {"consumer-offset-reset"}),
    (SAFE_READER + "auto.offset.reset=largest\n", {"consumer-offset-reset"}),
    (SAFE_READER + "auto.offset.reset=end\n", {"consumer-offset-reset"}),
    (SAFE_READER + "isolation.level=read_uncommitted\n", {"consumer-isolation"}),
    (SAFE_READER + "max.poll.records=10000\n", {"consumer-poll-interval"}),
    (SAFE_READER + "max.poll.interval.ms=10000\n", {"consumer-poll-interval"}),
    (SAFE_READER + "max.poll.interval.ms=10000\nsasl.username=u\n", set()),
    (SAFE_READER + "max.poll.interval.ms=86400000\n", {"consumer-poll-interval-long"}),
    (SAFE_READER + "max.poll.interval.ms=1800000\n", set()),
    (SAFE_READER + "max.poll.interval.ms=1800001\n", {"consumer-poll-interval-long"}),
    (SPARK, set()),
    (SPARK + "FAILONDATALOSS=false\n", {"spark-data-loss"}),
    (SPARK + "minPartitions=8\n", {"spark-min-partitions"}),
    (SPARK + "maxRecordsPerPartition=8\n", {"spark-min-partitions"}),
    (SPARK + "startingOffsets=LATEST\n", {"spark-starting-offsets"}),
    (SPARK + "kafka.isolation.level=read_uncommitted\n", {"spark-isolation"}),
    ("subscribe=payments\n", {"spark-starting-offsets", "spark-isolation"}),
    (SPARK + "kafka.enable.auto.commit=true\n", set()),
]


@pytest.mark.parametrize(("text", "rules"), WRONG_PRODUCERS)
def test_a_producer_is_judged_by_what_it_really_runs_with(text: str, rules: set[str]) -> None:
    assert set(found(producer_facts("file", parse_properties(text)))) == rules


@pytest.mark.parametrize(("text", "rules"), WRONG_CONSUMERS)
def test_a_consumer_is_judged_by_what_it_really_runs_with(text: str, rules: set[str]) -> None:
    assert set(found(consumer_facts("file", parse_properties(text)))) == rules


def test_every_rule_about_clients_is_found_somewhere_above() -> None:
    expected = {rule for _, rules in (*WRONG_PRODUCERS, *WRONG_CONSUMERS) for rule in rules}
    assert expected == rules_of(ProducerFacts) | rules_of(ConsumerFacts) | rules_of(SparkFacts)


def test_a_java_client_that_loses_its_idempotence_in_silence_is_told_by_what() -> None:
    seen = found(producer_facts("file", parse_properties(JAVA + "acks=1\n")))
    assert seen["producer-idempotence"] == ["enable.idempotence is not set, and switched off by acks=1"]


@pytest.mark.parametrize(
    ("text", "rule", "seen"),
    [
        (LIBRDKAFKA + "acks=all\n", "producer-idempotence", "enable.idempotence=false (not set: the default)"),
        (JAVA + "acks=all\nenable.idempotence=false\n", "producer-idempotence", "enable.idempotence=false"),
        (
            JAVA + SAFE + "max.in.flight.requests.per.connection=6\n",
            "producer-in-flight",
            "max.in.flight.requests.per.connection=6 with idempotence",
        ),
        (
            JAVA + "acks=all\nenable.idempotence=false\nmax.in.flight.requests.per.connection=2\n",
            "producer-in-flight",
            "max.in.flight.requests.per.connection=2 without idempotence",
        ),
        (JAVA + "enable.idempotence=true\n", "producer-unsaid", "not set: acks"),
        (JAVA + "acks=all\n", "producer-unsaid", "not set: enable.idempotence"),
    ],
)
def test_what_a_producer_runs_with_is_shown(text: str, rule: str, seen: str) -> None:
    assert found(producer_facts("file", parse_properties(text)))[rule] == [seen]


def test_the_time_of_a_record_is_held_against_the_poll_interval() -> None:
    given_properties = parse_properties(SAFE_READER + JAVA)
    assert found(consumer_facts("file", given_properties, record_seconds=0.6)) == {}
    assert found(consumer_facts("file", given_properties, record_seconds=1.0)) == {
        "consumer-poll-interval": [
            "max.poll.interval.ms=300000 (not set: the default), and a batch of 500 at 1 s each takes 500 s"
        ]
    }


def test_who_sends_again_from_a_table_may_give_up_early_but_not_repeat() -> None:
    hasty = producer_facts("file", parse_properties(LIBRDKAFKA + SAFE + "delivery.timeout.ms=10\nretries=1\n"))
    assert set(found(hasty)) == {"producer-delivery-timeout", "producer-retries"}
    assert found(replace(hasty, resends=True)) == {}
    careless = producer_facts("file", parse_properties(LIBRDKAFKA + "acks=1\nenable.idempotence=false\n"))
    assert set(found(replace(careless, resends=True))) == {
        "producer-acks",
        "producer-idempotence",
        "producer-in-flight",
    }


def test_a_value_that_is_none_is_unknown_and_not_passed() -> None:
    assert set(unknown(producer_facts("file", parse_properties(JAVA + SAFE + "retries=often\n")))) == {
        "producer-retries"
    }


@pytest.mark.parametrize(
    ("text", "flavour"),
    [("acks=1", "unknown"), (JAVA, "java"), (LIBRDKAFKA, "librdkafka"), (JAVA + LIBRDKAFKA, "unknown")],
)
def test_names_that_only_one_client_knows_tell_which_one_it_is(text: str, flavour: Flavour) -> None:
    assert flavour_of(parse_properties(text)) == flavour


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a : 1 \r\nb 2\nc", {"a": "1", "b": "2", "c": ""}),
        ("# a=1\n ! b=2\n\n  c = 3", {"c": "3"}),
        ("a=one\\\n   two", {"a": "onetwo"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    properties = parse_properties(text)
    producer_facts("file", properties)
    consumer_facts("file", properties)


@pytest.mark.parametrize("prefix", ["kafka.", "producer.", "consumer."])
def test_a_prefix_is_taken_off(prefix: str) -> None:
    assert producer_facts("file", {f"{prefix}acks": "1"}).settings["acks"] == "1"
    reader = consumer_facts("file", {f"{prefix}auto.offset.reset": "none"})
    assert reader.settings["auto.offset.reset"] == "none"


def test_nothing_of_a_file_is_kept_that_no_rule_asks_for() -> None:
    secret = {"sasl.jaas.config": "hidden", "sasl.password": "hidden", "ssl.key.password": "hidden"}
    for facts in (
        producer_facts("file", secret),
        consumer_facts("file", secret),
        consumer_facts("file", {**secret, "subscribe": "payments"}),
    ):
        assert "hidden" not in repr(facts)


def test_a_file_in_any_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes("# größe\nacks=1\n".encode("latin-1"))
    assert read_properties(path) == {"acks": "1"}
    path.write_bytes(b"\xef\xbb\xbfacks=1\n")
    assert read_properties(path) == {"acks": "1"}


@pytest.mark.parametrize("content", [b"\0", b"x" * 1_000_001])
def test_what_is_no_property_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(content)
    with pytest.raises(Misused, match="is no property file"):
        read_properties(path)
