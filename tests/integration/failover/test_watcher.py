"""The watcher takes over after a silence, not before, and only where it is switched on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.arena import Arena
from support.command import call
from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.acts import ASKS_FOR_SILENCE as SILENT
from zerotail.drill.acts import STATEMENTS_LOGGED
from zerotail.lab.database import dsn
from zerotail.lab.example import CONFIGURATION
from zerotail.lab.fault import continue_target, kill_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.operate.notebook import Note, Notebook, now
from zerotail.postgres.connection import session
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.promotion import promote

pytestmark = pytest.mark.servers

AFTER_SECONDS = 8.0
LOOK = "statement: begin"


@pytest.fixture
def own_lab(arena: Arena) -> Layout:
    """A new lab: one of its sites is lost."""
    return arena.renewed()


def configure(layout: Layout, **changes: Any) -> Path:
    path = layout.path / "west" / CONFIGURATION
    content = yaml.safe_load(path.read_text())
    content["takeover"] |= changes
    content["takeover"].pop("fence", None)
    path.write_text(yaml.safe_dump(content))
    return path


def said_in_log(layout: Layout, site: str, words: str) -> int:
    """How often a database has written that down; of what it is asked, only what the watcher asks."""
    return (layout.folder_of(f"{site}.postgres") / "log").read_text(errors="replace").count(words)


def is_live(layout: Layout, site: str) -> bool:
    with session(dsn(layout.database(site)), Deadline.after(10)) as connection:
        return read_standing(connection).live_at(SiteName(site))


def test_it_does_nothing_where_it_is_switched_off(own_lab: Layout) -> None:
    said = call("run", "watcher", "--site", "west", "--config", str(configure(own_lab, automatic=False)))
    assert said.code == 2
    assert "ZT120" in said.err


@contextmanager
def watching(config: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A watcher at west, and the file with what it says."""
    log = folder / "log"
    command = [sys.executable, "-m", "zerotail", "run", "watcher", "--site", "west"]
    with log.open("wb") as said:
        watcher = subprocess.Popen(
            [*command, "--config", str(config), "--state", str(folder / "notes")],
            stdout=said,
            stderr=said,
            env={**os.environ, **STATEMENTS_LOGGED},
        )
    try:
        wait_until("it watches", lambda: "watching east" in log.read_text(), Deadline.after(60))
        yield watcher, log
    finally:
        watcher.kill()
        watcher.wait()


def test_a_short_silence_changes_nothing_and_a_long_one_takes_over(own_lab: Layout, tmp_path: Path) -> None:
    config = configure(own_lab, automatic=True, after=f"{AFTER_SECONDS:g}s")
    with watching(config, tmp_path) as (watcher, log):
        stop_target(own_lab, "east.postgres")
        # Each look at a silent site takes 2.5 s: at the second one more than half of the silence has passed.
        wait_until("it was found silent twice", lambda: said_in_log(own_lab, "west", SILENT) >= 2, Deadline.after(60))
        looks = said_in_log(own_lab, "east", LOOK)
        continue_target(own_lab, "east.postgres")
        # The second look begins when the first has shown that it is alive.
        wait_until("it has answered", lambda: said_in_log(own_lab, "east", LOOK) >= looks + 2, Deadline.after(60))
        assert "taking over" not in log.read_text()
        assert watcher.poll() is None
        assert not is_live(own_lab, "west")

        killed_at = time.monotonic()
        assert kill_target(own_lab, "east").bit
        wait_until("west is live", lambda: is_live(own_lab, "west"), Deadline.after(60))
        assert time.monotonic() - killed_at >= AFTER_SECONDS
        assert watcher.wait(30) == 0
        assert "west is active" in log.read_text()


def test_what_was_begun_is_finished_although_the_other_site_answers(own_lab: Layout, tmp_path: Path) -> None:
    east, west = SiteName("east"), SiteName("west")
    notebook = Notebook(tmp_path / "notes")
    with notebook.locked():
        notebook.write(Note("takeover", west, east, "a plan", "somebody", (), now()))
    promote(dsn(own_lab.database("west")), Deadline.after(60))
    go_on_alone(own_lab, "insert into zerotail.epoch values (512, 'east', 1, 'exposed', 'live')")
    config = configure(own_lab, automatic=True, after="1h")
    with watching(config, tmp_path) as (watcher, log):
        wait_until("it refuses", lambda: "east has gone on in epoch 512" in log.read_text(), Deadline.after(60))
        assert not is_live(own_lab, "west")
        go_on_alone(own_lab, "delete from zerotail.epoch where epoch = 512")
        wait_until("west is live", lambda: is_live(own_lab, "west"), Deadline.after(60))
        assert watcher.wait(30) == 0
        assert "was begun and not finished" in log.read_text()
    assert is_live(own_lab, "east"), "by what its own database says: it answers, and does not know yet"
    assert notebook.find_unfinished(("takeover",)) is None


def go_on_alone(layout: Layout, change: str) -> None:
    """Let the old site go on in an epoch that the other one does not know, or take that back."""
    with session(dsn(layout.database("east")), Deadline.after(60)) as old:
        old.execute("set synchronous_commit = local")
        old.execute(change.encode())
