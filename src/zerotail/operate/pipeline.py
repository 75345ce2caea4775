"""The configured system as far as a takeover has to know it: stages, producers, lanes, topics.

A handler is loaded only when a record goes through it: a stage whose state is in the database needs no replay, and the
machine of an operator need not have its code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from zerotail.channel.configured import outside_channels
from zerotail.code import load_object
from zerotail.config import Configuration
from zerotail.core.identity import PartitionNumber, StageName
from zerotail.core.receiver import ReceiverClass
from zerotail.core.takeover import Strategy
from zerotail.failover.takeover import Pipeline
from zerotail.flow.stage import Stage
from zerotail.handler import Emission, Given, Handler, Record, State
from zerotail.postgres.connection import Connection
from zerotail.postgres.failover import find_producers
from zerotail.postgres.owed import find_lanes, find_partitions
from zerotail.running.code_versions import load_handler
from zerotail.running.parts import targets_of


@dataclass(frozen=True, slots=True)
class HandlerByName:
    """A handler that is loaded when the first record comes."""

    path: str

    def keys(self, record: Record) -> list[str]:
        """As the handler says."""
        return list(_handler(self.path).keys(record))

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        """As the handler does."""
        return list(_handler(self.path).apply(record, state, given))


def read_pipeline(
    configuration: Configuration,
    connection: Connection,
    strategy: Strategy = Strategy.SKIP,
    *,
    rebuild: bool = False,
) -> Pipeline:
    """What the configuration names, with the partitions and producer numbers that a database knows."""
    stages = [
        stage_at(configuration, name, partition)
        for name in configuration.stages
        for partition in find_partitions(connection, name)
    ]
    lanes = find_lanes(connection, outside_channels(configuration))
    return Pipeline(
        stages,
        {name: find_producers(connection, name) for name in configuration.stages},
        {lane: ReceiverClass(configuration.channels[lane.channel].receiver) for lane in lanes},
        stored=frozenset(name for name, settings in configuration.stages.items() if settings.state == "database"),
        strategy=strategy,
        rebuild=rebuild,
    )


def stage_at(configuration: Configuration, name: StageName, partition: PartitionNumber) -> Stage:
    """One partition of a configured stage; a replay goes by the versions in the journal."""
    settings = configuration.stages[name]
    handler = HandlerByName(settings.handler)
    return Stage(name, partition, settings.consumes, handler, "", targets_of(configuration, settings.emits))


def transforms_of(configuration: Configuration) -> dict[str, Callable[[bytes], bytes]]:
    """What producers make of their rows, by name."""
    return {
        str(name): _transform(producer.transform)
        for name, producer in configuration.producers.items()
        if producer.transform is not None
    }


def _transform(path: str) -> Callable[[bytes], bytes]:
    return lambda value: bytes(_loaded(path)(value))


@cache
def _loaded(path: str) -> Any:
    return load_object(path, "the configuration")


@cache
def _handler(path: str) -> Handler:
    return load_handler(path, "the configuration")
