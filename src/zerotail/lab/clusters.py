"""Two Kafka clusters and the link between them, without databases: all that a mirror needs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from zerotail.deadline import Deadline
from zerotail.lab.layout import LabSettings, Layout, plan_layout, ports_needed, write_layout
from zerotail.lab.part import start_part, wait_until_ready
from zerotail.lab.ports import reserve_ports
from zerotail.lab.site import start_new_broker
from zerotail.lab.up import cluster_ids_of, take_down

_UP_SECONDS = 180.0


@contextmanager
def temporary_clusters(brokers: int = 1) -> Iterator[Layout]:
    """The clusters of east and west for the length of a block; faults work on them as in any lab."""
    with tempfile.TemporaryDirectory(prefix="zerotail-") as scratch:
        settings = LabSettings(Path(scratch) / "lab", brokers)
        settings.folder.mkdir()
        layout = plan_layout(settings, reserve_ports(ports_needed(settings), settings.folder))
        write_layout(layout)
        deadline = Deadline.after(_UP_SECONDS)
        identities = cluster_ids_of(layout)
        parts = [place for place in layout.brokers if place.part not in layout.on_demand]
        try:
            start_part(layout, "link")
            with ThreadPoolExecutor(len(parts)) as pool:
                list(
                    pool.map(
                        lambda place: start_new_broker(layout, place.part, identities[place.cluster], deadline), parts
                    )
                )
            wait_until_ready(layout, "link", deadline)
            yield layout
        finally:
            take_down(settings.folder)
