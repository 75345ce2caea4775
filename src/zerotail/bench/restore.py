"""`zerotail bench restore`: the notes' tables, completed, and what restoring the order costs beside a plain read.

For each size, interleaving and number of producers a topic and its journal are made on real servers. Then, round by
round and one after the other, each in a process of its own: the plain read, the unbounded restore, the bounded one with
each size of cache. The ratio is taken within a round. The notes' two programs run beside them, once. The ordered refill
is measured against plain producing of the same messages with the same headers, alternately as well.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from zerotail.bench.goals import reached_of
from zerotail.bench.interleaving import KINDS
from zerotail.bench.restore_case import Case, make_case, prepare_database
from zerotail.bench.restore_goals import goals_of
from zerotail.bench.restore_result import RefillMeasured, RestoreBench, RestoreCase, RestoreRow, SparkMeasured, Spread
from zerotail.bench.restoring import Asked, Measured, place_of
from zerotail.core.identity import SiteName
from zerotail.errors import Unfinished
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import admin_client, remove_topic
from zerotail.lab.database import dsn
from zerotail.lab.layout import LabSettings
from zerotail.lab.up import temporary_lab

METHODS = ("unbounded", "bounded", "spilled", "checked", "rested", "dictionary", "rewinding")
_LARGE = 5_000_000
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RestoreSettings:
    """How much is measured."""

    sizes: tuple[int, ...] = (200_000, 1_000_000, 10_000_000)
    interleavings: tuple[str, ...] = KINDS
    producers: tuple[int, ...] = (2, 4, 16)
    caches: tuple[int, ...] = (10_000, 20_000, 50_000, 100_000)
    rounds: int = 3
    rewinding_seconds: float = 90.0
    refill_records: int = 1_000_000
    spark_records: int = 2_000_000
    methods: tuple[str, ...] = METHODS

    def cases(self) -> list[Case]:
        """Sizes of millions are measured as the notes have them: two producers, batches of 10,000."""
        return [
            Case(size, kind, producers)
            for size in self.sizes
            for kind in self.interleavings
            for producers in self.producers
            if size < _LARGE or (kind, producers) == ("like-notes", 2)
        ]


@dataclass(frozen=True, slots=True)
class Servers:
    """Where everything lies."""

    bootstrap: str
    dsn: str

    @property
    def cluster(self) -> Cluster:
        """The broker."""
        return Cluster(self.bootstrap)


def bench_restore(
    settings: RestoreSettings,
    tell: Tell,
    earlier: RestoreBench | None = None,
    save: Callable[[RestoreBench], None] = lambda _found: None,
) -> RestoreBench:
    """Measure everything in a lab of its own; what an earlier run measured besides stays. What is measured is saved
    at once, so that a run that is broken off has not been for nothing.
    """
    tell("bringing up two sites")
    with temporary_lab(LabSettings) as layout:
        broker = layout.cluster(SiteName("east"))[0]
        servers = Servers(f"127.0.0.1:{broker.port}", dsn(layout.database("east")))
        prepare_database(servers.dsn)
        found = earlier or RestoreBench((), None, None, {})
        if settings.refill_records:
            found = _with(found, refill=_measure_refill(servers, settings, tell))
            save(found)
        if settings.spark_records:
            found = _with(found, spark=_measure_spark(servers, settings, tell))
            save(found)
        for number, case in enumerate(settings.cases(), 1):
            tell(f"case {number} of {len(settings.cases())}: {case.name}")
            found = _with(found, case=_measure_case(case, servers, settings, tell))
            save(found)
    return found


def _with(
    found: RestoreBench,
    *,
    case: RestoreCase | None = None,
    refill: RefillMeasured | None = None,
    spark: SparkMeasured | None = None,
) -> RestoreBench:
    """A result with something new in it, in the place of what was known of the same."""
    known = {(one.records, one.interleaving, one.producers): one for one in found.cases}
    if case is not None:
        name = (case.records, case.interleaving, case.producers)
        known[name] = _updated(known[name], case) if name in known else case
    refill, spark = refill or found.refill, spark or found.spark
    ordered = sorted(known.values(), key=lambda one: (one.records, KINDS.index(one.interleaving), one.producers))
    return RestoreBench(tuple(ordered), refill, spark, reached_of(goals_of(ordered, refill, spark)))


def _updated(known: RestoreCase, new: RestoreCase) -> RestoreCase:
    """The new rows of a case, and those of the known ones that were not measured again."""
    rows = {(row.method, row.cache): row for row in (*known.rows, *new.rows)}
    ordered = sorted(rows.values(), key=lambda row: (METHODS.index(row.method), row.cache or 0))
    return replace(new, rows=tuple(ordered))


def _measure_case(case: Case, servers: Servers, settings: RestoreSettings, tell: Tell) -> RestoreCase:
    make_case(case, servers.dsn, servers.cluster)
    asked = Asked("plain", case, servers.bootstrap, servers.dsn, limit_seconds=settings.rewinding_seconds)
    ours = [
        replace(asked, method="unbounded"),
        replace(asked, method="checked"),
        *(replace(asked, method="bounded", cache=cache) for cache in settings.caches),
        replace(asked, method="spilled", cache=min(settings.caches)),
    ]
    if case.interleaving == "like-notes":
        ours.append(replace(asked, method="rested"))
    ours = [one for one in ours if one.method in settings.methods]
    rounds = 1 if case.records >= _LARGE else settings.rounds
    plain: list[Measured] = []
    found: list[list[Measured]] = [[] for _ in ours]
    for _ in range(rounds):
        plain.append(_run(asked))
        for place, one in enumerate(ours):
            found[place].append(_run(one))
    rows = [_row(one, measured, plain) for one, measured in zip(ours, found, strict=True)]
    if (case.interleaving, case.producers) == ("like-notes", 2):
        rows += _by_the_notes(asked, settings, plain)
    remove_topic(admin_client(servers.cluster), case.topic)
    for row in rows:
        tell(f"  {row.method} {row.cache or ''}: {row.seconds.median:.2f} s, ratio {row.ratio.median:.2f}")
    return RestoreCase(
        case.records, case.interleaving, case.producers, rounds, _spread([one.seconds for one in plain]), tuple(rows)
    )


def _by_the_notes(asked: Asked, settings: RestoreSettings, plain: Sequence[Measured]) -> list[RestoreRow]:
    """The notes' programs, once: the second one is given up after the limit."""
    dictionary = replace(asked, method="dictionary")
    rewinding = [replace(asked, method="rewinding", cache=cache) for cache in settings.caches]
    asked_for = [one for one in (dictionary, *rewinding) if one.method in settings.methods]
    return [_row(one, [_run(one)], plain[:1]) for one in asked_for]


def _row(asked: Asked, measured: Sequence[Measured], plain: Sequence[Measured]) -> RestoreRow:
    last = measured[-1]
    ratios = [one.seconds / other.seconds for one, other in zip(measured, plain, strict=True)]
    return RestoreRow(
        method=asked.method,
        cache=asked.cache or None,
        seconds=_spread([one.seconds for one in measured]),
        ratio=_spread(ratios),
        cpu_ratio=_spread([one.cpu_seconds / other.cpu_seconds for one, other in zip(measured, plain, strict=True)]),
        polls=last.polls,
        first_hits=last.first_hits,
        cache_hits=last.cache_hits,
        peak_cache=last.peak_cache,
        cache_ratio=round(last.peak_cache / asked.case.records, 4),
        reads=round(last.reads, 2),
        peak_memory_bytes=max(one.peak_memory_bytes for one in measured),
        records=last.records,
        finished=last.finished,
    )


def _measure_refill(servers: Servers, settings: RestoreSettings, tell: Tell) -> RefillMeasured:
    # A shape that no other case has, so that the journal is its own.
    case = Case(settings.refill_records, "fine", 3)
    tell(f"ordered refill of {case.records:,} records from their rows")
    make_case(case, servers.dsn, servers.cluster, with_rows=True)
    plain: list[float] = []
    ours: list[float] = []
    peak = 0
    for number in range(settings.rounds):
        asked = Asked("produce", case, servers.bootstrap, servers.dsn, into=f"plain-{number}")
        measured = _run(asked)
        plain.append(measured.records / measured.seconds)
        measured = _run(replace(asked, method="refill", into=f"refill-{number}"))
        ours.append(measured.records / measured.seconds)
        peak = max(peak, measured.peak_memory_bytes)
        tell(f"  refill {ours[-1]:,.0f}/s, plain producing {plain[-1]:,.0f}/s")
        for topic in (f"plain-{number}", f"refill-{number}"):
            remove_topic(admin_client(servers.cluster), topic)
    ratios = [one / other for one, other in zip(ours, plain, strict=True)]
    return RefillMeasured(case.records, case.producers, _spread(ours), _spread(plain), _spread(ratios), peak)


def _measure_spark(servers: Servers, settings: RestoreSettings, tell: Tell) -> SparkMeasured:
    from zerotail.spark.restore_bench import measure_spark

    case = Case(settings.spark_records, "like-notes", 3)
    tell(f"through Spark: {case.records:,} records")
    make_case(case, servers.dsn, servers.cluster)
    found = measure_spark([place_of(case, servers.bootstrap, servers.dsn)], settings.rounds, tell)
    remove_topic(admin_client(servers.cluster), case.topic)
    return SparkMeasured(
        case.records,
        case.interleaving,
        case.producers,
        _spread([one.plain for one in found]),
        _spread([one.in_order for one in found]),
        _spread([one.sorted for one in found]),
        _spread([one.in_order / one.plain for one in found]),
    )


def _run(asked: Asked) -> Measured:
    """One measurement, in a process of its own."""
    said = json.dumps(msgspec.to_builtins(asked))
    done = subprocess.run(
        [sys.executable, "-m", "zerotail.bench.restoring", said], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unfinished(f"the measurement {asked.method} of {asked.case.name} ended: {last}", code="ZT841")
    return msgspec.json.decode(done.stdout, type=Measured)


def _spread(figures: Sequence[float]) -> Spread:
    return Spread(round(statistics.median(figures), 3), round(min(figures), 3), round(max(figures), 3))
