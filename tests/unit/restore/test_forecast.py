"""What a restore would cost, told from a few looks: near what it then takes."""

from __future__ import annotations

import pytest

from support.disasters import Name, make_day, refill_by_others
from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.core.order import Order, Runs
from zerotail.core.restoration.forecast import (
    Forecast,
    Look,
    RestoreStrategy,
    choose_best,
    foresee_bounded,
    measure_disorder,
    plan_looks,
    waiting_at,
)
from zerotail.core.restoration.journal import rest_of
from zerotail.core.restoration.memory import plan_memory
from zerotail.errors import Refused

pytestmark = pytest.mark.fast

A, B = ProducerNumber(1), ProducerNumber(2)


def true_peak(order: Order, log: list[Name]) -> int:
    last: dict[ProducerNumber, Serial] = {}
    peak = 0
    for producer, serial in log:
        last[producer] = serial
        peak = max(peak, waiting_at(order, last))
    return peak


def looks_into(order: Order, log: list[Name], count: int = 48) -> list[Look]:
    seen: dict[ProducerNumber, list[tuple[int, Serial]]] = {}
    for step in range(count):
        place = len(log) * step // count
        for offset, (producer, serial) in enumerate(log[place : place + 5], place):
            seen.setdefault(producer, []).append((offset, serial))
    for producer, serial in log[-50:]:
        seen.setdefault(producer, []).append((len(log), serial))
    return plan_looks(order, seen, len(log), count)


@pytest.mark.parametrize("seed", range(5))
def test_the_peak_told_from_looks_is_near_the_true_one(seed: int) -> None:
    day = make_day(seed, 6000, mean_run=20)
    order = day.journal.order
    log = refill_by_others(seed + 100, day.taken, mean_run=200)
    told = measure_disorder(order, looks_into(order, log), len(log)).peak_cache_messages
    true = true_peak(order, log)
    assert 0.5 * true - 100 <= told <= 1.2 * true + 100


def test_one_producer_entirely_first_makes_half_of_the_records_wait() -> None:
    order = Order(Runs.of([(A, 1), (B, 1)] * 500))
    log: list[Name] = [(B, Serial(s)) for s in range(1, 501)] + [(A, Serial(s)) for s in range(1, 501)]
    looks = looks_into(order, log)
    assert 450 <= measure_disorder(order, looks, 1000).peak_cache_messages <= 500
    reading = foresee_bounded(order, looks, 1000, 50)
    assert reading.evicted == 1
    assert 1.9 <= reading.reads <= 2.0
    assert foresee_bounded(order, looks, 1000, 600) == foresee_bounded(order, looks, 1000, 500)


def test_a_log_in_order_waits_for_nothing_and_is_read_once() -> None:
    day = make_day(1, 1000)
    looks = looks_into(day.journal.order, list(day.taken))
    assert measure_disorder(day.journal.order, looks, 1000).peak_cache_messages <= 30
    assert foresee_bounded(day.journal.order, looks, 1000, 100).reads == 1.0


def test_the_best_is_the_fastest_that_restores_the_order_within_the_memory() -> None:
    def forecast(strategy: RestoreStrategy, seconds: float, memory: int, **more: bool) -> Forecast:
        return Forecast(strategy, more.pop("usable", True), "", seconds, memory, **more)

    skip = forecast(RestoreStrategy.SKIP, 0.1, 1, restores_order=False)
    follower = forecast(RestoreStrategy.FOLLOWER, 0.2, 1, usable=False)
    unbounded = forecast(RestoreStrategy.UNBOUNDED, 1.0, 900)
    bounded = forecast(RestoreStrategy.BOUNDED, 2.0, 90)
    assert choose_best([skip, follower, unbounded, bounded], 1000) is unbounded
    assert choose_best([skip, follower, unbounded, bounded], 100) is bounded
    assert choose_best([skip, follower], 100) is None


def test_the_rest_of_an_order_begins_behind_its_vector() -> None:
    day = make_day(7, 300, producers=3)
    order = day.journal.order
    for first in (0, 1, 150, 299, 300):
        rest = rest_of(order, Position(first))
        assert (rest.first_position, rest.next_position) == (first, 300)
        assert rest.vector_after == order.vector_after
        if first < 300:
            assert [rest.record_at(Position(p)) for p in range(first, 300)] == list(day.taken[first:])


def test_memory_is_shared_out_within_the_limit_and_refused_when_too_little() -> None:
    for limit in (48_000_000, 100_000_000, 512_000_000):
        shared = plan_memory(limit, journal_bytes=1_000_000, cursors=3, record_bytes=160)
        assert shared.other_bytes + 3 * shared.cache_bytes <= limit
    more = plan_memory(10**9, journal_bytes=1_000_000, cursors=3, record_bytes=160)
    assert more.cache_bytes > 250_000_000
    with pytest.raises(Refused, match="10,000,000 bytes are too few for a bounded restore with 3 cursors"):
        plan_memory(10_000_000, journal_bytes=1_000_000, cursors=3, record_bytes=160)
