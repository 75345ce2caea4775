"""Property files of other services: what a client really runs with, including what the file does not say.

Two families of clients read such files, with different names and, worse, different defaults. Which one it is shows in
names that only one of them knows; a file that could be either is judged by the worse default of the two. Everything is
brought to the Java client's names, so that a rule is written once. Options of Spark's Kafka connector are a third kind
of file: the connector sets the client's own settings itself.

1. A name that is given twice has its last value, as both clients read it.
2. An idempotent producer of librdkafka adjusts what was not given; one of the Java client that was not asked for
   idempotence silently does without it when another setting forbids it.
3. Only settings that rules ask for leave this module: property files hold passwords.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from zerotail.audit.facts import NO, ConsumerFacts, Flavour, ProducerFacts, Settings, SparkFacts
from zerotail.errors import Misused

_LARGEST_BYTES = 1_000_000
_PREFIXES = ("kafka.", "producer.", "consumer.")
_ONLY_JAVA = """
    key.serializer value.serializer key.deserializer value.deserializer buffer.memory max.block.ms block.on.buffer.full
    max.poll.records partitioner.class interceptor.classes sasl.jaas.config ssl.truststore.location
    default.api.timeout.ms partition.assignment.strategy
"""
_ONLY_LIBRDKAFKA = """
    request.required.acks message.send.max.retries message.timeout.ms max.in.flight metadata.broker.list
    queue.buffering.max.messages queue.buffering.max.kbytes batch.num.messages enable.auto.offset.store sasl.username
    sasl.password ssl.ca.location log_level enable.gapless.guarantee enable.partition.eof socket.timeout.ms
    queued.min.messages broker.address.family statistics.interval.ms
"""
_ONLY_SPARK = """
    subscribe subscribepattern assign startingoffsets endingoffsets failondataloss minpartitions maxoffsetspertrigger
    maxrecordsperpartition
"""
_ALIASES = {
    "request.required.acks": "acks",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
}
_IN_FLIGHT = "max.in.flight.requests.per.connection"
_ENDLESS = str(2**31 - 1)
_PRODUCER_DEFAULTS: dict[Flavour, dict[str, str]] = {
    "java": {
        "acks": "all",
        "enable.idempotence": "true",
        "retries": _ENDLESS,
        "delivery.timeout.ms": "120000",
        _IN_FLIGHT: "5",
        "max.block.ms": "60000",
        "block.on.buffer.full": "true",
    },
    "librdkafka": {
        "acks": "all",
        "enable.idempotence": "false",
        "retries": _ENDLESS,
        "delivery.timeout.ms": "300000",
        _IN_FLIGHT: "1000000",
    },
}
_PRODUCER_DEFAULTS["unknown"] = {**_PRODUCER_DEFAULTS["java"], **_PRODUCER_DEFAULTS["librdkafka"]}
_CONSUMER_DEFAULTS: dict[Flavour, dict[str, str]] = {
    "java": {
        "enable.auto.commit": "true",
        "auto.offset.reset": "latest",
        "isolation.level": "read_uncommitted",
        "max.poll.interval.ms": "300000",
        "max.poll.records": "500",
    },
    "librdkafka": {
        "enable.auto.commit": "true",
        "auto.offset.reset": "largest",
        "isolation.level": "read_committed",
        "max.poll.interval.ms": "300000",
        "max.poll.records": "1",
    },
}
_CONSUMER_DEFAULTS["unknown"] = _CONSUMER_DEFAULTS["java"]
_SPARK_DEFAULTS = {
    "failondataloss": "true",
    "startingoffsets": "latest",
    "kafka.isolation.level": "read_uncommitted",
}
_SPARK_NAMES = {
    "failondataloss": "failOnDataLoss",
    "startingoffsets": "startingOffsets",
    "minpartitions": "minPartitions",
    "maxrecordsperpartition": "maxRecordsPerPartition",
    "kafka.isolation.level": "kafka.isolation.level",
}
_PROPERTY = re.compile(r"\s*((?:\\.|[^\\=:\s])+)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)


def read_properties(path: Path) -> dict[str, str]:
    """The properties of a file; `Misused` when it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise Misused(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > _LARGEST_BYTES or b"\0" in content:
        raise Misused(f"{path} is no property file: it is binary, or larger than {_LARGEST_BYTES:,} bytes.")
    try:
        return parse_properties(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return parse_properties(content.decode("latin-1"))


def parse_properties(text: str) -> dict[str, str]:
    """Names to values, as java.util.Properties reads them; escapes of single characters only."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        matched = _PROPERTY.match(line)
        if matched:
            name, value = (re.sub(r"\\(.)", r"\1", part) for part in matched.groups())
            found[name] = value.strip()
    return found


def _logical_lines(text: str) -> list[str]:
    """Lines without comments; one that ends with an odd number of backslashes goes on in the next."""
    lines: list[str] = []
    begun = ""
    for line in text.splitlines():
        if not begun and line.lstrip().startswith(("#", "!")):
            continue
        whole = begun + (line.lstrip() if begun else line)
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            begun = whole[:-1]
        else:
            lines.append(whole)
            begun = ""
    return [*lines, begun]


def flavour_of(given: dict[str, str]) -> Flavour:
    """Which family of clients reads this; unknown when no name tells, or both do."""
    java, librdkafka = (set(given) & set(names.split()) for names in (_ONLY_JAVA, _ONLY_LIBRDKAFKA))
    if bool(java) == bool(librdkafka):
        return "unknown"
    return "java" if java else "librdkafka"


def producer_facts(name: str, given: dict[str, str], flavour: Flavour | None = None) -> ProducerFacts:
    """What a producer with these properties runs with."""
    plain = _plain(given)
    flavour = flavour or flavour_of(plain)
    said = _canonical(plain)
    values = {**_PRODUCER_DEFAULTS[flavour], **said}
    if flavour == "librdkafka" and _IN_FLIGHT not in said and values["enable.idempotence"].lower() not in NO:
        values[_IN_FLIGHT] = "5"
    if flavour == "java" and "enable.idempotence" not in said and not _may_be_idempotent(values):
        values["enable.idempotence"] = "false"
    settings = _settings(values, _PRODUCER_DEFAULTS["unknown"], said)
    return ProducerFacts(name, flavour, settings, resends=False)


def consumer_facts(
    name: str, given: dict[str, str], record_seconds: float | None = None, flavour: Flavour | None = None
) -> ConsumerFacts | SparkFacts:
    """What a consumer with these properties runs with; options of Spark's connector are told apart by their names."""
    if any(option.lower() in _ONLY_SPARK.split() for option in given):
        return spark_facts(name, given)
    plain = _plain(given)
    flavour = flavour or flavour_of(plain)
    said = _canonical(plain)
    settings = _settings({**_CONSUMER_DEFAULTS[flavour], **said}, _CONSUMER_DEFAULTS["java"], said)
    return ConsumerFacts(name, flavour, settings, keeps_place=False, record_seconds=record_seconds)


def spark_facts(name: str, options: dict[str, str], *, keeps_place: bool = False) -> SparkFacts:
    """The options of Spark's connector, whose names know no case."""
    said = {option.lower(): value for option, value in options.items()}
    values = {**_SPARK_DEFAULTS, **said}
    shown = {_SPARK_NAMES[option]: values[option] for option in _SPARK_NAMES if option in values}
    return SparkFacts(
        name, Settings(shown, frozenset(_SPARK_NAMES[one] for one in _SPARK_DEFAULTS if one not in said)), keeps_place
    )


def _plain(given: dict[str, str]) -> dict[str, str]:
    plain: dict[str, str] = {}
    for name, value in given.items():
        prefix = next((one for one in _PREFIXES if name.startswith(one)), "")
        plain[name.removeprefix(prefix)] = value
    return plain


def _canonical(plain: dict[str, str]) -> dict[str, str]:
    said = {_ALIASES.get(name, name): value for name, value in plain.items()}
    if said.get("acks") == "-1":
        said["acks"] = "all"
    return said


def _may_be_idempotent(values: dict[str, str]) -> bool:
    return values["acks"] == "all" and values["retries"] != "0" and values[_IN_FLIGHT] in ("1", "2", "3", "4", "5")


def _settings(values: dict[str, str], kept: Collection[str], said: dict[str, str]) -> Settings:
    names = [name for name in values if name in kept]
    return Settings({name: values[name] for name in names}, frozenset(name for name in names if name not in said))
