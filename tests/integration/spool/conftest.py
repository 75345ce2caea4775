"""A producer that is fed from a spool, in the warm lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running import Running
from support.spool_process import PARTITIONS
from support.tracing import SpoolProcess
from zerotail.config import load
from zerotail.core.identity import SiteName
from zerotail.lab.layout import Layout
from zerotail.running.prepare import prepare


@pytest.fixture
def system(lab: Layout, tmp_path: Path) -> Running:
    """The producer `cards-spooled` is registered; nothing of it runs."""
    system = Running(lab, tmp_path, "spooled", partitions=PARTITIONS, producers=(), spooled=("cards",))
    system.write()
    prepare(load(system.config), SiteName("east"))
    return system


@pytest.fixture
def spooling(system: Running) -> Iterator[SpoolProcess]:
    """A service with a spool for that producer."""
    process = SpoolProcess(system.folder / "queue", system.config)
    yield process
    process.end()
