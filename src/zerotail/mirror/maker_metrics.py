"""What MirrorMaker 2 measures, read from the JMX exporter agent inside its process, under the names Kafka gave it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from urllib.error import URLError
from urllib.request import urlopen

_PREFIXES = (
    "kafka_consumer_consumer_fetch_manager_metrics_",
    "kafka_consumer_consumer_metrics_",
    "kafka_producer_producer_metrics_",
    "kafka_connect_mirror_MirrorSourceConnector_",
)
_LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)(?: \d+)?$")
_SHOWN = """
    fetch-size-avg fetch-size-max fetch-rate fetch-throttle-time-avg fetch-throttle-time-max
    batch-size-avg batch-size-max requests-in-flight record-retry-rate io-ratio io-wait-ratio
    record-rate record-age-ms-avg record-age-ms-max replication-latency-ms-avg replication-latency-ms-max
"""
_WANTED = frozenset(_SHOWN.split())
_OWN_WORK = re.compile(r"client_id=\"[^\"]*(MirrorSource|replication|connector-producer)")
_ANSWER_SECONDS = 2.0

EXPORTER_SETTINGS = """\
includeObjectNames:
  - "kafka.consumer:*"
  - "kafka.producer:*"
  - "kafka.connect.mirror:*"
"""


def read_metrics(port: int) -> dict[str, float]:
    """The metrics of the process behind this port; none while it does not answer."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_ANSWER_SECONDS) as answer:
            return parse_metrics(answer.read().decode())
    except (URLError, OSError):
        return {}


def parse_metrics(text: str) -> dict[str, float]:
    """The wanted metrics of a Prometheus text, the highest of all clients that carry records."""
    found: dict[str, float] = {}
    for name, value in _samples(text):
        found[name] = max(found.get(name, value), value)
    return found


def _samples(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        matched = _LINE.match(line)
        prefix = next((one for one in _PREFIXES if matched and matched["name"].startswith(one)), None)
        if matched is None or prefix is None:
            continue
        name = matched["name"].removeprefix(prefix).replace("_", "-")
        labels = matched["labels"] or ""
        value = float(matched["value"])
        carries = "client_id" not in labels or _OWN_WORK.search(labels)
        if name in _WANTED and carries and not math.isnan(value):
            yield name, value
