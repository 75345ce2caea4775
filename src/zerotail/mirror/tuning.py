"""`mirror advise`: watch a running mirror for some seconds, and say what holds it up."""

from __future__ import annotations

import time
from pathlib import Path

from zerotail.core.topology import Flow
from zerotail.errors import Refused
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.copy import WRITING
from zerotail.kafka.reading import READING
from zerotail.mirror.advice import Measured, Verdict, advise
from zerotail.mirror.note import FlowNote, read_note
from zerotail.mirror.standing import FlowStanding, observe_flow


def observe_verdict(
    flow: Flow, source: Cluster, target: Cluster, state: Path, seconds: float, tasks: int
) -> tuple[Verdict, FlowStanding]:
    """Look at the note of the running mirror twice, and at Kafka in between."""
    before = _require_note(state, flow)
    began = time.monotonic()
    standing = observe_flow(flow, source, target, state, late_seconds=5.0, between_seconds=seconds)
    after = _require_note(state, flow)
    elapsed = time.monotonic() - began
    settings = {**_text(READING), **_text(WRITING), **dict(source.settings), **dict(target.settings)}
    metrics: dict[str, float] = dict(after.metrics)
    for one in after.partitions:
        for name, value in one.metrics.items():
            metrics[name] = max(metrics.get(name, value), value)
    measured = Measured(
        elapsed,
        _sum(after, "copied") - _sum(before, "copied"),
        standing.lag_records,
        _seconds(after, "reading_seconds") - _seconds(before, "reading_seconds"),
        _seconds(after, "sending_seconds") - _seconds(before, "sending_seconds"),
        metrics,
        settings,
        len(standing.partitions),
        tasks,
    )
    return advise(measured), standing


def _require_note(state: Path, flow: Flow) -> FlowNote:
    note = read_note(state, flow.name)
    if note is None or not note.runs:
        raise Refused(
            f"{flow.name} does not run on this machine, so nothing can be measured.",
            code="ZT494",
            tries=[f"zerotail mirror run {flow.mirror}"],
        )
    return note


def _text(settings: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


def _sum(note: FlowNote, name: str) -> int:
    return sum(int(getattr(one, name)) for one in note.partitions)


def _seconds(note: FlowNote, name: str) -> float:
    return sum(float(getattr(one, name)) for one in note.partitions)
