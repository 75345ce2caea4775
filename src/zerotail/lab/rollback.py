"""The storage of a database as it was a while ago: kept, and put back, as a snapshot of a volume does it.

The server is killed for both, so that what is kept is what a crash would have left at one moment. What comes back has
the same system, the same timeline and its slots, and lacks the end of its log.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.fault import FaultReport, kill_target, start_target
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import session
from zerotail.postgres.position import read_flushed

_PATIENCE_SECONDS = 30.0


def keep_snapshot(layout: Layout, site: str) -> None:
    """Keep what the storage of a site's database holds now."""
    part = f"{site}.postgres"
    kill_target(layout, part)
    shutil.rmtree(_kept(layout, site), ignore_errors=True)
    _copy(_data(layout, site), _kept(layout, site))
    start_target(layout, part)


def roll_back(layout: Layout, site: str) -> FaultReport:
    """Put back what was kept; the server is started with it."""
    part = f"{site}.postgres"
    reached = _flushed(layout, site)
    kill_target(layout, part)
    shutil.rmtree(_data(layout, site))
    _kept(layout, site).rename(_data(layout, site))
    start_target(layout, part)
    lost = reached - _flushed(layout, site)
    evidence = (f"its log ends {lost} bytes before the place that it had reached",)
    return FaultReport("storage-rolled-back", site, lost > 0, evidence)


def _flushed(layout: Layout, site: str) -> int:
    with session(dsn(layout.database(site)), Deadline.after(_PATIENCE_SECONDS)) as primary:
        return read_flushed(primary)


def _data(layout: Layout, site: str) -> Path:
    return layout.folder_of(f"{site}.postgres") / "data"


def _kept(layout: Layout, site: str) -> Path:
    return layout.folder_of(f"{site}.postgres") / "kept"


def _copy(source: Path, target: Path) -> None:
    # Owners count: as root, the databases run as another user.
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)
