"""Who holds a mirror up, told from numbers that were made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from zerotail.mirror.advice import Measured, advise
from zerotail.mirror.network import network_advice, observe_network

pytestmark = pytest.mark.fast


def measured(reading: float, sending: float, lag: int = 1_000_000, tasks: int = 2, **metrics: float) -> Measured:
    named = {name.replace("_", "-"): value for name, value in metrics.items()}
    settings = {"fetch.message.max.bytes": "8000000", "batch.size": "1000000"}
    return Measured(10.0, 1000, lag, reading, sending, named, settings, partitions=8, tasks=tasks)


@pytest.mark.parametrize(
    ("seen", "side", "cause", "first"),
    [
        (measured(9, 1, fetch_size_avg=900, fetch_rate=300), "consumer", "tiny fetches", "fetch.min.bytes"),
        (
            measured(9, 1, fetch_size_avg=900_000, fetch_rate=2),
            "consumer",
            "slow source",
            "socket.receive.buffer.bytes",
        ),
        (measured(9, 1, fetch_throttle_time_avg=40), "consumer", "throttled", "quota consumer_byte_rate at the source"),
        (measured(1, 9, batch_size_avg=300, batch_size_max=310), "producer", "tiny batches", "linger.ms"),
        (
            measured(1, 9, batch_size_avg=700_000, requests_in_flight=5),
            "producer",
            "slow target",
            "max.in.flight.requests.per.connection",
        ),
        (measured(1, 9, record_retry_rate=2), "producer", "retries", "brokers of the target"),
        (measured(5, 5), "neither", "balanced", "spark.master"),
    ],
)
def test_the_side_that_waits_longest_is_named_with_its_cause(seen: Measured, side: str, cause: str, first: str) -> None:
    verdict = advise(seen)
    assert (verdict.side, verdict.cause, verdict.advice[0].setting) == (side, cause, first)
    assert all(one.because for one in verdict.advice)


def test_a_mirror_that_keeps_up_is_left_alone() -> None:
    for seen in (measured(9, 1, lag=50), measured(0, 0, lag=50)):
        verdict = advise(seen)
        assert (verdict.cause, verdict.advice, verdict.is_well) == ("keeps up", (), True)


def test_a_mirror_that_is_behind_and_was_not_measured_is_not_said_to_keep_up() -> None:
    verdict = advise(measured(0, 0, lag=5_000_000))
    assert (verdict.side, verdict.cause, verdict.advice, verdict.is_well) == ("neither", "unknown", (), False)
    assert verdict.why.startswith("5,000,000 records behind")


def test_more_cores_are_advised_only_where_partitions_wait_for_a_task() -> None:
    assert "spark.master" in [one.setting for one in advise(measured(9, 1, fetch_size_avg=1e6)).advice]
    assert "spark.master" not in [one.setting for one in advise(measured(9, 1, tasks=8, fetch_size_avg=1e6)).advice]


def test_settings_of_the_kernel_are_read_and_judged_and_never_written(tmp_path: Path) -> None:
    for name, value in {"core/rmem_max": "212992", "core/wmem_max": "33554432", "ipv4/tcp_window_scaling": "1"}.items():
        file = tmp_path / "net" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    settings = observe_network(tmp_path)
    assert {one.name for one in settings if one.is_right} == {"net.core.wmem_max", "net.ipv4.tcp_window_scaling"}
    (advice,) = network_advice(settings)
    assert advice.because == "sysctl -w net.core.rmem_max=16777216"
    assert (tmp_path / "net/core/rmem_max").read_text() == "212992\n"


def test_partitions_that_are_dealt_out_in_ranges_should_be_dealt_out_in_turn() -> None:
    ranges = {"partition.assignment.strategy": "range,cooperative-sticky"}
    behind = Measured(10.0, 1000, 50_000, 9.0, 1.0, {"fetch-size-avg": 900_000.0}, ranges, partitions=12, tasks=2)
    advised = {one.setting: one.wanted for one in advise(behind).advice}
    assert advised["partition.assignment.strategy"] == "roundrobin"
    assert "partition.assignment.strategy" not in {one.setting for one in advise(replace(behind, settings={})).advice}
