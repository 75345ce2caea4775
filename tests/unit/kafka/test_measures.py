"""librdkafka's tellings, under the names of Kafka's own clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zerotail.kafka.measures import NetworkShare, ReaderMeasures, WriterMeasures

pytestmark = pytest.mark.fast


def reader_told(seconds: float, fetches: int, size: int, throttle: int = 0) -> str:
    broker = {"req": {"Fetch": fetches}, "throttle": {"avg": throttle, "max": 2 * throttle}}
    return json.dumps({"ts": seconds * 1e6, "rxmsg_bytes": size, "brokers": {"one": broker, "two": {}}})


def test_rates_and_averages_are_taken_between_two_tellings() -> None:
    measures = ReaderMeasures()
    for told in (reader_told(1, 10, 1000), reader_told(3, 30, 41_000, 5), reader_told(4, 40, 46_000)):
        measures.take(told)
    assert measures.values["fetch-rate"] == 10
    assert measures.values["fetch-size-avg"] == 500
    assert measures.values["fetch-size-max"] == 2000
    assert measures.values["fetch-throttle-time-avg"] == 0
    assert measures.values["fetch-throttle-time-max"] == 10


def test_a_reader_that_fetched_nothing_has_no_average() -> None:
    measures = ReaderMeasures()
    measures.take(reader_told(1, 10, 1000))
    measures.take(reader_told(2, 10, 1000))
    assert measures.values["fetch-size-avg"] == 0


def test_what_was_fetched_before_the_first_telling_counts() -> None:
    measures = ReaderMeasures()
    measures.take(json.dumps({**json.loads(reader_told(9, 10, 1000)), "age": 2e6}))
    assert (measures.values["fetch-rate"], measures.values["fetch-size-max"]) == (5, 100)


def test_batches_requests_and_retries_of_a_writer() -> None:
    measures = WriterMeasures()
    for seconds, retries, size in ((1, 0, 900), (3, 8, 500)):
        topic: dict[str, Any] = {"batchsize": {"cnt": 3, "avg": size, "max": 2 * size}}
        brokers = {"one": {"waitresp_cnt": 2, "txretries": retries}, "two": {"waitresp_cnt": 1}}
        measures.take(json.dumps({"ts": seconds * 1e6, "brokers": brokers, "topics": {"audit": topic}}))
    assert measures.values == {
        "batch-size-avg": 500,
        "batch-size-max": 1800,
        "requests-in-flight": 3,
        "record-retry-rate": 4,
    }


def test_without_network_threads_nothing_is_said_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # Clients of other tests may have left theirs in this process.
    monkeypatch.setattr("zerotail.kafka.measures._network_seconds", lambda: (0.0, 0))
    assert NetworkShare().values() == {}
