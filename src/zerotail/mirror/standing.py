"""How far a flow is: lag in records and in seconds, with its trend, and the state of every partition, worst first.

The positions are asked of Kafka, at both ends, and need no running mirror. What a mirror on this machine says of itself
(`mirror.note`) is put beside them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.topology import Flow
from zerotail.errors import Unavailable
from zerotail.kafka.catalogue import Catalogue
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.maker_offsets import read_maker_places
from zerotail.kafka.peek import timestamps_at
from zerotail.kafka.places import Partition, Places
from zerotail.mirror.note import FlowNote, PartitionNote, read_note

_MOST_TIMED = 64
"""So many partitions are asked for the age of their first record that is not copied, the longest lag first."""
_STATES = ("fenced", "stopped", "waiting", "unknown", "lagging", "copying")
"""Worst first."""


@dataclass(frozen=True, slots=True)
class PartitionStanding:
    """One partition of a flow."""

    topic: str
    partition: int
    state: str
    note: str
    lag_records: int
    lag_seconds: float | None
    """None when it is not known."""
    trend: float
    """By how many records a second the lag grows; below zero it shrinks."""
    next_offset: int
    """Of the source: up to there everything is copied."""
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FlowStanding:
    """One flow."""

    flow: str
    source: str
    target: str
    engine: str
    runs: bool | None
    """Whether its mirror runs on this machine; None when nobody has heard of it here."""
    partitions: tuple[PartitionStanding, ...]
    metrics: Mapping[str, float]
    silent: str = ""
    """Why nothing is known."""

    @property
    def lag_records(self) -> int:
        """Of all partitions."""
        return sum(one.lag_records for one in self.partitions)

    @property
    def lag_seconds(self) -> float:
        """Of the partition that is furthest behind."""
        return max((one.lag_seconds or 0.0 for one in self.partitions), default=0.0)

    @property
    def is_well(self) -> bool:
        """Whether it could be looked at and nothing has stopped."""
        return not self.silent and all(one.state in ("copying", "lagging") for one in self.partitions)


def observe_flow(
    flow: Flow, source: Cluster, target: Cluster, state: Path, *, late_seconds: float, between_seconds: float = 1.0
) -> FlowStanding:
    """Look twice, so that there is a trend; `late_seconds` is how far behind a partition may be."""
    note = read_note(state, flow.name)
    runs = None if note is None else note.runs and note.state != "ended"
    said = (flow.name, flow.source, flow.target, flow.engine, runs)
    try:
        first = _look(flow, source, target)
        time.sleep(between_seconds)
        second = _look(flow, source, target)
    except Unavailable as error:
        return FlowStanding(*said, (), {}, error.message)
    lags = {one: max(0, end - place) for one, (place, end) in second.items()}
    lagging = sorted((one for one in lags if lags[one]), key=lambda one: -lags[one])[:_MOST_TIMED]
    ages = timestamps_at(source, {one: second[one][0] for one in lagging})
    now = time.time()
    notes = {} if note is None or not runs else {(one.topic, one.partition): one for one in note.partitions}
    found = []
    for one, lag in lags.items():
        age = max(0.0, now - ages[one] / 1000) if one in ages else (0.0 if not lag else None)
        grown = (lag - max(0, first[one][1] - first[one][0])) / between_seconds if one in first else 0.0
        own: PartitionNote | None = notes.get(one)
        state_now, why = _state(own, age, lag, late_seconds)
        metrics = own.metrics if own else {}
        found.append(PartitionStanding(*one, state_now, why, lag, age, grown, second[one][0], metrics))
    found.sort(key=lambda one: (_STATES.index(one.state), -(one.lag_seconds or 0.0), -one.lag_records, one.topic))
    return FlowStanding(*said, tuple(found), _process_metrics(note, runs))


def _process_metrics(note: FlowNote | None, runs: bool | None) -> Mapping[str, float]:
    return note.metrics if note is not None and runs else {}


def _look(flow: Flow, source: Cluster, target: Cluster) -> dict[Partition, tuple[Offset, Offset]]:
    """For each partition of the source: the next offset to be copied, and the end."""
    catalogue = Catalogue(source, flow.source)
    counts, _ = catalogue.partition_counts()
    wanted: list[Partition] = [
        (TopicName(name), PartitionNumber(number))
        for name, count in counts.items()
        if flow.takes(name)
        for number in range(count)
    ]
    bounds = Places(source, flow.source).bounds(wanted)
    if flow.engine == "mm2":
        offsets = read_maker_places(target, flow.source)
    else:
        places = Places(target, flow.target).read(flow)
        offsets = {
            (topic, partition): places[flow.target_topic(topic), partition].next_offset
            for topic, partition in wanted
            if (flow.target_topic(topic), partition) in places
        }
    return {one: (offsets.get(one, begin), end) for one, (begin, end) in bounds.items()}


def _state(own: PartitionNote | None, age: float | None, lag: int, late_seconds: float) -> tuple[str, str]:
    if own is not None and own.state in ("fenced", "stopped", "waiting"):
        return own.state, own.note
    if lag and age is None:
        return "unknown", "the first record that is not copied could not be read"
    if age is not None and age > late_seconds:
        return "lagging", ""
    return "copying", ""
