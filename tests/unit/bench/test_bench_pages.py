"""The sections about flow, journal and mirrors: what was found beside what was wanted, and how runs join."""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryDirectory

import pytest

from zerotail.bench import flow, mirror
from zerotail.bench.flow import FlowSettings, bench_flow
from zerotail.bench.flow_page import section_of as flow_section
from zerotail.bench.goals import reached_of
from zerotail.bench.journal_page import goals_of as journal_goals
from zerotail.bench.journal_page import section_of as journal_section
from zerotail.bench.mirror import ENGINES, MirrorSettings, bench_mirror
from zerotail.bench.mirror_page import section_of as mirror_section
from zerotail.bench.result import FlowBench, FlowResult, JournalCost, MirrorResult
from zerotail.bench.stored import Stored
from zerotail.drill.durability.faults import FAULTS
from zerotail.drill.durability.result import CellFound, DurabilityResult, FaultPlayed
from zerotail.drill.durability.run import WHOLE, only, run_durability
from zerotail.errors import Misused
from zerotail.mirror.maker import _CONSUMER, _PRODUCER

pytestmark = pytest.mark.fast

CASE = FlowResult(31_000.0, 50_000.0, 0.62, 0.7, 1.4, 10_000.0, 300_000, 20_000, 1, ())
COST = JournalCost(2_000, 1_000, 0.861, 0.759, 80.4, 1e-6, 2e-5, 126.0, {})


@pytest.fixture
def flows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow that is half as fast with every partition more."""

    def measure(settings: FlowSettings, _tell: flow.Tell) -> FlowResult:
        speed = 40_000 / settings.partitions
        rounds = ({"records_per_second": speed, "baseline_records_per_second": 50_000.0, "ratio": speed / 50_000},)
        ratio = speed / 50_000
        return replace(CASE, records_per_second=speed, ratio=ratio, partitions=settings.partitions, rounds=rounds)

    monkeypatch.setattr(flow, "_bench", measure)


def flow_with(partitions: int, earlier: FlowBench | None = None) -> FlowBench:
    return bench_flow(FlowSettings(partitions=partitions), lambda _line: None, earlier)


@pytest.mark.usefixtures("flows")
def test_flows_with_other_partitions_join_and_the_same_one_is_replaced() -> None:
    both = flow_with(1, flow_with(4))
    assert [one.partitions for one in both.cases] == [1, 4]
    assert both.reached["ratio-1"]
    assert not both.reached["ratio-4"]
    assert [one.partitions for one in flow_with(4, both).cases] == [1, 4]


@pytest.mark.usefixtures("flows")
def test_the_section_about_the_flow_names_the_goals_that_are_missed() -> None:
    section = flow_section(Stored((), flow_with(4, flow_with(1))))
    assert "| 1 partition: 30,000 records/s end to end | 40,000 | reached |" in section
    assert "| 4 partitions: 30,000 records/s end to end | 10,000 | **not reached** |" in section
    assert "| 4 | 1 | 10,000 | 50,000 | 0.20 | 10,000/s | 0.70 s | 1.40 s |" in section
    assert "Each round with 4 of them, ours and plain Spark: 10,000 and 50,000 (0.20)." in section


def test_the_section_about_the_journal_shows_bytes_and_time() -> None:
    section = journal_section(Stored((), COST))
    assert "| at most 1 byte of WAL per message, whole-page images included | 0.86 | reached |" in section
    assert "| a segment, between checkpoints | 0.76 | – |" in section
    assert "| the same order as one row per message | 80 | 20.00 |" in section
    assert reached_of(journal_goals(replace(COST, bytes_per_message=1.2))) == {"bytes_per_message": False}


@pytest.fixture
def mirrors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines of which each is half as fast as the one before."""

    def measure(_lab: object, _scratch: object, _settings: object, engine: str, partitions: int, _n: int) -> object:
        rate = 100_000.0 / 2 ** ENGINES.index(engine)
        return mirror._Round(engine, partitions, rate, 1.0, 2.5, complete=engine != "mm2" or partitions == 1)

    monkeypatch.setattr(mirror, "_measure", measure)
    monkeypatch.setattr(mirror, "_lag", lambda *_: 2.5)
    monkeypatch.setattr(mirror, "temporary_clusters", TemporaryDirectory)


def mirror_with(*partitions: int, earlier: MirrorResult | None = None, count: int = 5_000) -> MirrorResult:
    return bench_mirror(MirrorSettings(count, 100, partitions, 1), lambda _line: None, earlier)


@pytest.mark.usefixtures("mirrors")
def test_mirrors_with_other_partitions_join_and_other_sizes_do_not() -> None:
    one = mirror_with(1)
    both = mirror_with(4, earlier=one)
    assert both.ratios == {"1": 2.0, "4": 2.0}
    assert both.ratios_tuned == {"1": 4.0, "4": 4.0}
    assert both.ratios_interval == {"1": 8.0, "4": 8.0}
    assert len(both.rounds) == 8
    assert len(mirror_with(4, earlier=both).rounds) == 8
    with pytest.raises(Misused, match="has 5000 records of 100 bytes"):
        mirror_with(4, earlier=one, count=6_000)


@pytest.mark.usefixtures("mirrors")
def test_the_section_about_mirrors_shows_every_engine_and_what_is_missed() -> None:
    section = mirror_section(Stored((), mirror_with(1, 4)))
    assert "| Spark mirror | 100,000 | 100,000 | 2.5, 2.5 |" in section
    assert section.count("| MirrorMaker 2, exactly-once") == 2
    assert "`transaction.boundary=interval`" in section
    assert "| 2.50 s at 50,000 records/s | **not reached** |" in section
    assert "| 7 of 8 rounds | **not reached** |" in section


def test_the_plain_maker_gets_kafkas_own_defaults_for_all_that_we_set_for_speed() -> None:
    ours = {f"west.producer.{name}" for name in _PRODUCER} | {f"east.consumer.{name}" for name in _CONSUMER}
    for_safety = {
        *(f"west.producer.{name}" for name in ("acks", "enable.idempotence", "retries", "delivery.timeout.ms")),
        "west.producer.max.in.flight.requests.per.connection",
        *(f"east.consumer.{name}" for name in ("isolation.level", "auto.offset.reset")),
        "east.consumer.partition.assignment.strategy",  # MirrorMaker 2 assigns partitions itself
    }
    assert set(mirror.AS_KAFKA_HAS_IT) == ours - for_safety
    assert mirror.AS_KAFKA_HAS_IT["west.producer.linger.ms"] == "5", "0 before Kafka 4.0 (KIP-1030)"


def durability_of(names: tuple[str, ...], lost: int, earlier: DurabilityResult | None = None) -> DurabilityResult:
    from zerotail.drill.durability import run

    faults = [one for one in FAULTS if one.name in names]
    played = [FaultPlayed(one.name, "", 4, 4, 4, ("seen",), 10.0) for one in faults]
    cells = [
        CellFound(
            "acks-0-min-1-clean", "0", 1, False, False, False, one.name, 10, 10, 10 - lost, lost, 0, 1, lost, False
        )
        for one in faults
    ]
    return run._result(only(names), played, cells, earlier)


def test_faults_that_are_not_played_now_stay_in_the_order_of_all() -> None:
    first, second = FAULTS[0].name, FAULTS[1].name
    later = durability_of((second,), 3)
    both = durability_of((first,), 2, later)
    assert [one.name for one in both.faults] == [first, second]
    assert {one.fault: one.lost for one in both.cells} == {first: 2, second: 3}
    assert both.kills == 8
    assert both.seconds == 20.0
    again = durability_of((second,), 5, both)
    assert {one.fault: one.lost for one in again.cells} == {first: 2, second: 5}
    assert callable(run_durability)
    assert set(WHOLE.rounds) == {one.name for one in FAULTS}
