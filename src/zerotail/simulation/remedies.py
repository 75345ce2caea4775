"""The judge of decisions about records that stopped a partition.

1. Whatever a segment carries out, an operator decided, about this very record.
2. A skipped record changes nothing, a replaced one changes what its replacement says, every other one what it says
   itself. The balances are added up here by a rule of its own, a few lines long, and not by the code that is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zerotail.core.head import Segment
from zerotail.core.identity import ProducerNumber, Serial
from zerotail.core.poison import Remedy
from zerotail.flow.stage import Stage
from zerotail.handler import decode_value
from zerotail.simulation.postgres import Server
from zerotail.simulation.topology import Ledger
from zerotail.simulation.violation import Violation
from zerotail.simulation.world import World


def judge_decisions(world: World, server: Server) -> list[Violation]:
    """S17: nothing is passed over or changed but by an operator's word, and nothing else comes of it."""
    return [violation for stage in world.topology.stages for violation in _judge_stage(world, server, stage)]


def _judge_stage(world: World, server: Server, stage: Stage) -> Iterator[Violation]:
    place = (stage.name, stage.partition)
    segments: Sequence[Segment] = server.table("segments").get(place, ())
    said = {note[1:] for note in world.decided}
    for segment in segments:
        names = _names(segment)
        for at, decision in segment.decided:
            if (*place, *names[at], segment.digests[at], decision) not in said:
                yield Violation("S17", f"nobody decided to {decision.remedy.value} {names[at]} of {stage.name}")
    if isinstance(stage.handler, Ledger):
        stored = {key[2]: decode_value(value) for key, value in server.table("state").items() if key[:2] == place}
        if stored != _balances(world, server, stage, segments):
            yield Violation("S17", f"the balances of {stage.name} are not what was decided")


def _names(segment: Segment) -> list[tuple[ProducerNumber, Serial]]:
    return [(producer, Serial(first + step)) for producer, first, count in segment.runs for step in range(count)]


def _balances(world: World, server: Server, stage: Stage, segments: Sequence[Segment]) -> dict[str, int]:
    balances: dict[str, int] = {}
    for segment in segments:
        decided = dict(segment.decided)
        for at, value in enumerate(world.values_of(server, stage.partition, segment)):
            decision = decided.get(at)
            if decision is not None and decision.remedy is Remedy.SKIP:
                continue
            account, amount = decode_value(value if decision is None else decision.value)[:2]
            balances[f"a{account}"] = balances.get(f"a{account}", 0) + amount
    return balances
