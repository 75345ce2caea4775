"""`zerotail bench mirror`: the Spark mirror beside MirrorMaker 2 with exactly-once, on the same topics.

Each round fills new topics at the source, starts one engine, and watches the target: the time to the first record is
its start-up, the rest is its rate. The sides take turns. What arrives is read back and must be the same records in the
same order, or the round does not count. At the end the Spark mirror runs at half of the rate that it reached, and
records carry the moment at which they were written.

MirrorMaker 2 runs three times, with exactly-once each time: with Kafka's own client settings, which is what the figure
is about; with those of `zerotail mirror generate`; and with these and transactions that end by the clock
(`transaction.boundary=interval`) and not behind each poll. It has more knobs than these: nobody claims that any of the
three is as fast as it can be made.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from threading import Thread

from zerotail.bench.goals import reached_of
from zerotail.bench.maker import running_maker
from zerotail.bench.mirror_page import LAG_P99_SECONDS, goals_of
from zerotail.bench.processor import cpu_seconds
from zerotail.bench.result import MirrorResult
from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Misused, Unfinished
from zerotail.kafka.catalogue import Catalogue
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.feed import Feeder, Tail, count_records
from zerotail.kafka.places import Places
from zerotail.lab.clusters import temporary_clusters
from zerotail.lab.layout import Layout
from zerotail.mirror.load import make_load
from zerotail.mirror.topics import TopicPlan

_PATIENCE_SECONDS = 300.0
_LOOK_SECONDS = 0.02
_SETTLE_SECONDS = 20.0
_FILLER = b"." * 20

ENGINES = ("spark", "mm2", "mm2-tuned", "mm2-interval")
AS_KAFKA_HAS_IT = {
    "east.consumer.max.poll.records": "500",
    "west.producer.linger.ms": "5",
    "west.producer.batch.size": "16384",
}
"""Kafka's own defaults, since 4.0, of all that `zerotail mirror generate` sets for the sake of speed."""
_BY_THE_CLOCK = {
    "east->west.transaction.boundary": "interval",
    "east->west.transaction.boundary.interval.ms": "1000",
}
_MORE = {"mm2": AS_KAFKA_HAS_IT, "mm2-tuned": {}, "mm2-interval": _BY_THE_CLOCK}

Tell = Callable[[str], None]
Told = dict[str, float | str | bool]


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """What is measured."""

    count: int = 1_000_000
    size: int = 100
    partitions: tuple[int, ...] = (1, 4)
    rounds: int = 2
    lag_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class _Round:
    engine: str
    partitions: int
    records_per_second: float
    startup_seconds: float
    cpu_microseconds: float
    """Of the engine's processes, per record: says more than the rate on a machine that does other things, too."""
    complete: bool


def bench_mirror(settings: MirrorSettings, tell: Tell, earlier: MirrorResult | None = None) -> MirrorResult:
    """Measure the engines in turn, then the lag at half rate; what was measured with other partitions stays."""
    if earlier and (earlier.count, earlier.size) != (settings.count, settings.size):
        raise Misused(
            f"the result that is to be kept has {earlier.count} records of {earlier.size} bytes a round.",
            code="ZT147",
            tries=[f"--count {earlier.count} --size {earlier.size}"],
        )
    tell("bringing up two clusters")
    rounds: list[Told] = []
    with temporary_clusters() as lab, tempfile.TemporaryDirectory(prefix="zerotail-mirror-") as scratch:
        for number in range(settings.rounds):
            for partitions in settings.partitions:
                for engine in ENGINES:
                    done = _measure(lab, Path(scratch), settings, engine, partitions, number)
                    rounds.append(_told(done))
                    tell(
                        f"{engine} with {partitions} partitions: {done.records_per_second:,.0f} records/s, "
                        f"{done.cpu_microseconds:.1f} µs of processor time each, first record after "
                        f"{done.startup_seconds:.1f} s, {'complete' if done.complete else 'WRONG'}"
                    )
        half = _median(rounds, "spark", settings.partitions[0], "records_per_second") / 2
        lag = _lag(lab, Path(scratch), half, settings.lag_seconds)
        tell(f"at {half:,.0f} records/s the lag is {lag:.2f} s (p99)")
    return _result(settings, rounds, lag, half, earlier)


def _median(rounds: Sequence[Told], engine: str, partitions: int, figure: str) -> float:
    some = [one[figure] for one in rounds if (one["engine"], one["partitions"]) == (engine, partitions)]
    return round(median(float(one) for one in some), 2)


def _result(
    settings: MirrorSettings, new: Sequence[Told], lag: float, half: float, earlier: MirrorResult | None
) -> MirrorResult:
    """Of the new rounds, and of those earlier ones that had other numbers of partitions."""
    kept = [one for one in earlier.rounds if one["partitions"] not in settings.partitions] if earlier else []
    rounds = (*kept, *new)
    counts = sorted({int(one["partitions"]) for one in rounds})
    rates = {f"{engine}-{p}": _median(rounds, engine, p, "records_per_second") for engine in ENGINES for p in counts}
    costs = {f"{engine}-{p}": _median(rounds, engine, p, "cpu_microseconds") for engine in ENGINES for p in counts}
    plain, tuned, interval = (
        {str(p): round(rates[f"spark-{p}"] / rates[f"{maker}-{p}"], 2) for p in counts} for maker in ENGINES[1:]
    )
    found = MirrorResult(
        count=settings.count,
        size=settings.size,
        records_per_second=rates,
        cpu_microseconds=costs,
        ratios=plain,
        ratios_tuned=tuned,
        ratios_interval=interval,
        lag_p99_seconds=round(lag, 3),
        lag_records_per_second=round(half, 1),
        rounds=rounds,
        reached={},
    )
    return replace(found, reached=reached_of(goals_of(found)))


def _told(one: _Round) -> Told:
    return {
        "engine": one.engine,
        "partitions": one.partitions,
        "records_per_second": round(one.records_per_second, 1),
        "startup_seconds": round(one.startup_seconds, 2),
        "cpu_microseconds": round(one.cpu_microseconds, 2),
        "complete": one.complete,
    }


def _measure(lab: Layout, scratch: Path, settings: MirrorSettings, engine: str, partitions: int, number: int) -> _Round:
    topic = f"bench-{engine}-{partitions}-{number}"
    east, west = Cluster(lab.bootstrap("east")), Cluster(lab.bootstrap("west"))
    Catalogue(east, "east").carry_out(TopicPlan(topic, True, partitions, 1, {}, ()))
    make_load(
        east, topic, count=settings.count, size=settings.size, rate=None, compression="none", partitions=partitions
    )
    with _running(lab, scratch, engine, topic) as pid:
        began = time.monotonic()
        first, first_count = _wait_for(west, topic, partitions, 1, began)
        worked = cpu_seconds(pid())
        last, _ = _wait_for(west, topic, partitions, settings.count, began)
        worked = cpu_seconds(pid()) - worked
        rate = (settings.count - first_count) / max(1e-9, last - first)
        # Markers of transactions were counted with the records: the last few may still be on their way.
        complete = _is_complete(east, west, topic, partitions)
    cost = worked / max(1, settings.count - first_count) * 1e6
    return _Round(engine, partitions, rate, first - began, cost, complete)


def _is_complete(east: Cluster, west: Cluster, topic: str, partitions: int) -> bool:
    """Whether the same records stand in the same order at both sides, a moment later at the latest."""
    wanted = count_records(east, topic, partitions)
    deadline = Deadline.after(_SETTLE_SECONDS)
    while count_records(west, topic, partitions) != wanted:
        if deadline.passed:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _wait_for(cluster: Cluster, topic: str, partitions: int, count: int, began: float) -> tuple[float, int]:
    """The moment at which so many records, with the markers between them, lie in the topic, and how many there are."""
    places = [(TopicName(topic), PartitionNumber(number)) for number in range(partitions)]
    logs = Places(cluster, "west")

    def found() -> tuple[float, int] | None:
        ends = logs.ends(places)
        total = sum(ends.values())
        return (time.monotonic(), total) if len(ends) == partitions and total >= count else None

    return wait_until(
        f"{count} records of {topic} are at the target",
        found,
        Deadline(began + _PATIENCE_SECONDS),
        every_seconds=_LOOK_SECONDS,
        late=Unfinished,
    )


@contextmanager
def _running(lab: Layout, scratch: Path, engine: str, topic: str) -> Iterator[Callable[[], int]]:
    """One engine for the length of a block, beside the link, which would slow both; yields who it is."""
    if engine != "spark":
        clusters = {site: Cluster(lab.bootstrap(site)) for site in ("east", "west")}
        with running_maker(topic, clusters, [topic], scratch / topic, _MORE[engine]) as maker:
            yield lambda: maker.processes[0].pid or 0
        return
    config = scratch / f"{topic}.yaml"
    config.write_text(_configuration(lab, topic))
    with subprocess.Popen(
        [sys.executable, "-m", "zerotail", "mirror", "run", "--config", str(config)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ZEROTAIL_STATE": str(scratch / topic)},
    ) as process:
        try:
            yield lambda: process.pid
        finally:
            process.terminate()
            process.wait(60)


def _configuration(lab: Layout, topic: str) -> str:
    sites = "".join(
        f'  {site}: {{kafka: {{bootstrap: "{lab.bootstrap(site)}"}}, database: {{dsn: "host={site} dbname=none"}}}}\n'
        for site in ("east", "west")
    )
    ends = "topology: active-passive, source: east, target: west"
    return f'name: bench\nsites:\n{sites}mirrors: [{{name: {topic}, {ends}, topics: ["{topic}"]}}]\n'


def _lag(lab: Layout, scratch: Path, rate: float, seconds: float) -> float:
    """Seconds from writing at the source to reading at the target, of 99 in 100 records, at a steady rate."""
    topic = "bench-lag"
    east, west = Cluster(lab.bootstrap("east")), Cluster(lab.bootstrap("west"))
    Catalogue(east, "east").carry_out(TopicPlan(topic, True, 1, 1, {}, ()))
    feeder = Feeder(east, topic, queue_buffering_max_messages=500_000)
    seen = _Seen()
    with _running(lab, scratch, "spark", topic):
        feeder.send(_FILLER)
        feeder.finish()
        _wait_for(west, topic, 1, 1, time.monotonic())
        tail = Tail(west, topic)
        reader = Thread(target=lambda: seen.read(tail, seconds + 2 * LAG_P99_SECONDS))
        reader.start()
        began, sent = time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < seconds:
            due = int(rate * elapsed) - sent
            if due > 0:
                feeder.send_many([b"%d" % time.time_ns(), *[_FILLER] * (due - 1)])
                sent += due
            time.sleep(0.005)
        feeder.finish()
        reader.join()
        tail.close()
    if seen.records < sent:
        return float(seconds)  # what has not come is later than everything that has
    return sorted(seen.lags)[int(0.99 * len(seen.lags))]


class _Seen:
    """What arrives at the target: every record is counted, and some carry the moment at which they were written."""

    def __init__(self) -> None:
        self.records = 0
        self.lags: list[float] = []

    def read(self, tail: Tail, seconds: float) -> None:
        for value, at in tail.read(seconds):
            self.records += 1
            if value != _FILLER:
                self.lags.append(at - int(value) / 1e9)
