"""MirrorMaker's metrics, from what the agent in its process tells."""

from __future__ import annotations

import pytest

from zerotail.mirror.maker_metrics import parse_metrics

pytestmark = pytest.mark.fast

TOLD = """\
# HELP kafka_consumer_consumer_fetch_manager_metrics_fetch_size_avg fetch-size-avg
kafka_consumer_consumer_fetch_manager_metrics_fetch_size_avg{client_id="east->west|MirrorSourceConnector-0|east"} 2000.0
kafka_consumer_consumer_fetch_manager_metrics_fetch_size_avg{client_id="east->west|MirrorSourceConnector-1|east"} 3000.0
kafka_consumer_consumer_fetch_manager_metrics_fetch_size_avg{client_id="mm2-configs"} 9e9
kafka_consumer_consumer_fetch_manager_metrics_fetch_rate{client_id="MirrorSourceConnector-0"} NaN
kafka_producer_producer_metrics_record_retry_rate{client_id="connector-producer-MirrorSourceConnector-0"} 0.5
kafka_connect_mirror_MirrorSourceConnector_record_age_ms_max{target="west",topic="a",partition="0"} 12.0
jvm_threads_current 20.0
"""


def test_the_highest_of_the_clients_that_carry_records_is_told() -> None:
    assert parse_metrics(TOLD) == {"fetch-size-avg": 3000.0, "record-retry-rate": 0.5, "record-age-ms-max": 12.0}


def test_what_is_no_metric_is_no_metric() -> None:
    assert parse_metrics("<html>\n\nnothing here 1\n") == {}
