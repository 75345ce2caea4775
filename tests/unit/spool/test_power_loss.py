"""A loss of power: only what was made durable is left, of every file and of every folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from zerotail import Spool
from zerotail.errors import Refused
from zerotail.spool import folder
from zerotail.spool.aside import keep_aside, read_aside
from zerotail.spool.spool import LEAST_LIMIT_BYTES

pytestmark = pytest.mark.fast


class Disk:
    """Remembers what `fsync` and `fdatasync` have made durable: contents by file, names by folder."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._contents: dict[int, bytes] = {}
        self._names: dict[str, dict[str, int]] = {}
        self.images = 0
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._syncing(getattr(os, name)))

    def _syncing(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(file: int) -> None:
            real(file)
            known = os.fstat(file)
            path = os.readlink(f"/proc/self/fd/{file}")
            if stat.S_ISDIR(known.st_mode):
                self._names[path] = {entry.name: entry.inode() for entry in os.scandir(path)}
            else:
                self._contents[known.st_ino] = Path(path).read_bytes()

        return sync

    def after_power_loss(self, path: Path) -> Path:
        """A copy of the folder as the next start would find it."""
        self.images += 1
        left = path.parent / f"left-{self.images}"
        left.mkdir()
        for name, inode in self._names.get(str(path), {}).items():
            (left / name).write_bytes(self._contents.get(inode, b""))
        return left


def found_in(path: Path) -> set[str]:
    with Spool(path) as spool:
        return {entry.id for entry in spool.read(spool.drained, most_entries=10**6, most_bytes=10**9)}


def run_until_power_is_lost(disk: Disk, path: Path) -> None:
    """Fill and drain; at every step, what was told and not drained is there after a loss of power."""
    told: list[str] = []
    drained = 0
    with Spool(path, "cards", limit_bytes=LEAST_LIMIT_BYTES) as spool:
        for number in range(60):
            spool.put(f"c-{number}", bytes(2000))
            told.append(f"c-{number}")
            if number % 7 == 6:
                drained = number - 3
                spool.release(drained + 1)
            if number % 3 == 0:
                left = found_in(disk.after_power_loss(spool.folder))
                assert set(told[drained + 1 :]) <= left, number
                assert left <= set(told)


def test_what_was_told_is_there_after_a_loss_of_power_at_any_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    run_until_power_is_lost(disk, tmp_path / "queue")
    assert disk.images == 20


@pytest.mark.parametrize("forgotten", ["file", "folder"])
def test_a_forgotten_sync_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: str) -> None:
    disk = Disk(monkeypatch)
    if forgotten == "file":
        monkeypatch.setattr(os, "fdatasync", lambda _: None)
    else:
        monkeypatch.setattr(folder, "sync_folder", lambda _: None)
    with pytest.raises((AssertionError, Refused)):
        run_until_power_is_lost(disk, tmp_path / "queue")


def test_what_was_set_aside_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    with Spool(tmp_path / "queue", "cards") as spool:
        spool.put("c-1", b"x")
        entries = spool.read(0, most_entries=1, most_bytes=1)
        keep_aside(spool.folder, entries)
        assert read_aside(disk.after_power_loss(spool.folder)) == entries
