"""A database that comes back as a snapshot of its storage: everything behind it is gone, on the same timeline."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout


@contextmanager
def snapshot(lab: Layout, site: str) -> Iterator[Path]:
    """What the storage of a site's database holds now; the server crashes for it, and starts again."""
    part = f"{site}.postgres"
    with TemporaryDirectory() as folder:
        kill_target(lab, part)
        _copy(lab.folder_of(part) / "data", Path(folder) / "data")
        start_target(lab, part)
        yield Path(folder) / "data"


def roll_back(lab: Layout, site: str, kept: Path) -> None:
    """Let the snapshot take the place of what became of it."""
    part = f"{site}.postgres"
    kill_target(lab, part)
    data = lab.folder_of(part) / "data"
    shutil.rmtree(data)
    _copy(kept, data)
    start_target(lab, part)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "--archive", source, target], check=True)
