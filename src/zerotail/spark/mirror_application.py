"""The Spark application of a mirror: its flows, kept running."""

from __future__ import annotations

from pathlib import Path

from zerotail.config import Configuration
from zerotail.core.copying import Kind
from zerotail.core.identity import PartitionNumber, TopicName
from zerotail.core.topology import Flow
from zerotail.kafka.copy_order import Outcome
from zerotail.mirror.flows import clusters_of
from zerotail.mirror.note import NoteWriter
from zerotail.running.report import Tell
from zerotail.spark.application import Application
from zerotail.spark.mirror_source import Ends
from zerotail.spark.running_mirror import RunningMirror


def run_flows(
    configuration: Configuration,
    flows: tuple[Flow, ...],
    accepted: frozenset[tuple[Kind, str]],
    state: Path,
    application: Application,
    tell: Tell,
) -> int:
    """Copy until stopped, or until a newer start takes over; the exit code."""
    clusters = clusters_of(configuration)
    writers = {flow.name: NoteWriter(state, flow.name, flow.engine) for flow in flows}

    def heard(flow: str, topic: TopicName, partition: PartitionNumber, outcome: Outcome) -> None:
        writers[flow].hear(topic, partition, outcome)

    try:
        return application.run(
            f"mirror {flows[0].mirror}",
            lambda spark: [
                RunningMirror(spark, Ends(flow, clusters[flow.source], clusters[flow.target]), accepted, tell, heard)
                for flow in flows
            ],
        )
    finally:
        for writer in writers.values():
            writer.close()
