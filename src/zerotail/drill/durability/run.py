"""The durability drill: every fault on every cell, round after round, then the counting.

For each fault: a topic for each cell, all led by broker 1. For each round: the cluster is whole and at rest, the load
begins, the fault strikes at a moment chosen by the seed, the cluster answers and gets back what was taken, the load
rests. After the last round everything is read back once, from the beginning: what is lost is lost in the end, and not
only for a while.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from zerotail.deadline import Deadline
from zerotail.drill.durability.cells import CELLS, Cell
from zerotail.drill.durability.faults import FAULTS, Fault
from zerotail.drill.durability.judgement import WANTED_KILLS, judge
from zerotail.drill.durability.ledger import Count
from zerotail.drill.durability.load import Load
from zerotail.drill.durability.result import CellFound, DurabilityResult, FaultPlayed
from zerotail.drill.durability.stage import Stage
from zerotail.errors import Misused
from zerotail.jars import locked_jars
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import Admin
from zerotail.kafka.numbered import create_topics, delete_topics, read_numbers
from zerotail.lab.cluster import BROKERS, BrokerCluster, temporary_cluster

_BEFORE_SECONDS = (0.5, 1.0)
_AFTERWARDS_SECONDS = 0.3
_READ_SECONDS = 120.0
_IMPATIENT = (("socket.timeout.ms", "3000"),)
"""A broker that is frozen keeps its connections: whoever asks it must turn to another one soon."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DurabilitySettings:
    """How much is played."""

    rounds: Mapping[str, int]
    """By fault; those that are not named are not played."""
    rate: float = 400.0
    """Records a second and cell."""
    partitions: int = 2
    """Of each topic."""
    seed: int = 1

    @property
    def kills(self) -> int:
        """How often a leader is killed."""
        return sum(self.rounds.get(fault.name, 0) for fault in FAULTS if fault.kills_leader)


WHOLE = DurabilitySettings({fault.name: fault.rounds for fault in FAULTS})
EACH_ONCE = DurabilitySettings({fault.name: 1 for fault in FAULTS})
QUICK = DurabilitySettings({"leader-killed-followers-behind": 2}, partitions=1)


def only(faults: Sequence[str]) -> DurabilitySettings:
    """The whole of these faults; `Misused` when there is no such fault."""
    for name in faults:
        if name not in WHOLE.rounds:
            raise Misused(f"there is no fault {name!r}.", code="ZT160", tries=[f"one of: {', '.join(WHOLE.rounds)}"])
    return replace(WHOLE, rounds={name: WHOLE.rounds[name] for name in WHOLE.rounds if name in faults})


def run_durability(
    settings: DurabilitySettings, tell: Tell, earlier: DurabilityResult | None = None
) -> DurabilityResult:
    """Bring up a cluster, play, take it down, judge; faults that an earlier run played and this one did not stay."""
    began = time.monotonic()
    chance = random.Random(settings.seed)  # noqa: S311 - not a secret
    faults: list[FaultPlayed] = []
    cells: list[CellFound] = []
    with temporary_cluster() as cluster:
        tell(f"three brokers and a controller are up after {time.monotonic() - began:.1f} s")
        for fault in FAULTS:
            if fault.name in settings.rounds:
                played, found = _play(cluster, fault, settings, chance, tell)
                faults.append(played)
                cells += found
    return _result(settings, faults, cells, earlier)


def _result(
    settings: DurabilitySettings,
    faults: Sequence[FaultPlayed],
    cells: Sequence[CellFound],
    earlier: DurabilityResult | None,
) -> DurabilityResult:
    new = {one.name for one in faults}
    played = {one.name: one for one in (*(earlier.faults if earlier else ()), *faults)}
    ordered = [played[fault.name] for fault in FAULTS if fault.name in played]
    found = [one for one in (*(earlier.cells if earlier else ()),) if one.fault not in new] + [*cells]
    kills = sum(one.kills for one in ordered)
    seconds = sum(one.seconds for one in ordered)
    judgement = judge(ordered, found, seconds, wanted_kills=WANTED_KILLS if kills >= WANTED_KILLS else 0)
    return DurabilityResult(
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        kills=kills,
        leaders_lost=sum(one.rounds for one in ordered) * settings.partitions * len(CELLS),
        rate=settings.rate,
        partitions=settings.partitions,
        seconds=round(seconds, 1),
        versions=_versions(),
        faults=tuple(ordered),
        cells=tuple(found),
        reached=judgement.reached,
    )


def _versions() -> dict[str, str]:
    kafka = next(jar.version for jar in locked_jars() if jar.artifact == "kafka_2.13")
    return {"kafka": kafka, "confluent-kafka": version("confluent-kafka")}


def _play(
    cluster: BrokerCluster, fault: Fault, settings: DurabilitySettings, chance: random.Random, tell: Tell
) -> tuple[FaultPlayed, list[CellFound]]:
    """One fault, as often as wanted."""
    began = time.monotonic()
    address = Cluster(cluster.bootstrap)
    client = Admin(address)
    topics = {f"{fault.name}.{cell.name}": cell for cell in CELLS}
    rounds = settings.rounds[fault.name]
    create_topics(client, {topic: cell.for_topic() for topic, cell in topics.items()}, settings.partitions, BROKERS)
    stage = Stage(cluster, Admin(replace(address, settings=_IMPATIENT)), topics)
    load = Load(address, topics, settings.partitions, settings.rate)
    try:
        stage.wait_until_whole()
        evidence = [_strike(stage, load, fault, chance) for _ in range(rounds)]
    finally:
        load.close()
    read = read_numbers(address, list(topics), settings.partitions, Deadline.after(_READ_SECONDS))
    counts = {topic: ledger.count(read.get(topic, [])) for topic, ledger in load.ledgers.items()}
    delete_topics(client, topics)
    found = [_found(fault, cell, counts[topic]) for topic, cell in topics.items()]
    seconds = time.monotonic() - began
    bit = sum(bool(told) for told in evidence)
    kills = rounds if fault.kills_leader else 0
    tell(f"{fault.name}: {rounds} rounds in {seconds:.0f} s, lost {sum(one.lost for one in found):,} in all cells")
    return FaultPlayed(fault.name, fault.summary, rounds, kills, bit, evidence[0], round(seconds, 1)), found


def _strike(stage: Stage, load: Load, fault: Fault, chance: random.Random) -> tuple[str, ...]:
    """One round; begins and ends with the cluster whole and the load at rest."""
    load.go()
    time.sleep(chance.uniform(*_BEFORE_SECONDS))
    evidence = fault.play(stage)
    time.sleep(_AFTERWARDS_SECONDS)
    load.rest()
    stage.wait_until_whole()
    load.wait_until_answered()
    stage.lead_by_first()
    return evidence


def _found(fault: Fault, cell: Cell, count: Count) -> CellFound:
    return CellFound(
        cell=cell.name,
        acks=cell.acks,
        min_insync=cell.min_insync,
        unclean=cell.unclean,
        idempotent=cell.idempotent,
        flushed=cell.flushed,
        fault=fault.name,
        written=count.written,
        acknowledged=count.acknowledged,
        found=count.found,
        lost=count.lost,
        repeated=count.repeated,
        rounds_with_loss=sum(one > 0 for one in count.lost_by_round),
        worst_round=max(count.lost_by_round, default=0),
        promised=fault.promises(cell),
    )
