"""MirrorMaker 2 from east to west, for the length of a block: whatever is measured against it runs it so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from zerotail.core.topology import plan_flows
from zerotail.kafka.cluster import Cluster
from zerotail.mirror.maker import MakerSettings
from zerotail.mirror.maker_run import MakerRun


@contextmanager
def running_maker(
    name: str,
    clusters: Mapping[str, Cluster],
    topics: Sequence[str],
    folder: Path,
    more: Mapping[str, str] | None = None,
) -> Iterator[MakerRun]:
    """Copy topics under their own names, one copy each; its state and its files go into `folder`."""
    flows = plan_flows(
        name, "active-passive", ["east"], ["west"], patterns=topics, names="identity", engine="mm2", clusters=clusters
    )
    maker = MakerRun(flows, clusters, folder, lambda _line: None, MakerSettings(copies=1, more=more or {}))
    thread = Thread(target=maker.run, name="mirrormaker")
    thread.start()
    try:
        yield maker
    finally:
        maker.stop()
        thread.join()
