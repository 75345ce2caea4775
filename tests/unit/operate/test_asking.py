"""Receivers are asked before a takeover, which does not wait for those that are silent."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.standings import EAST, WEST, observed, standing
from zerotail.channel.asking import ask_channels
from zerotail.config import Configuration, load
from zerotail.core.completeness import Surplus
from zerotail.core.identity import Lsn, Timeline
from zerotail.failover.rejoin import holds_more_perhaps
from zerotail.operate import world

pytestmark = pytest.mark.fast


@pytest.fixture
def silent() -> Iterator[int]:
    """A receiver that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def configured(folder: Path, port: int) -> Configuration:
    sites = {
        name: {"kafka": {"bootstrap": f"127.0.0.1:{one}"}, "database": {"dsn": f"host=127.0.0.1 port={one}"}}
        for one, name in enumerate(("east", "west"), 1)
    }
    bank = {"kind": "http", "receiver": "R2", "url": f"http://127.0.0.1:{port}/b"}
    content = {
        "name": "bank",
        "sites": sites,
        "topics": {"t": {"partitions": 16, "replication": 1}},
        "stages": {"s": {"consumes": "t", "handler": "math:sqrt", "emits": ["bank"]}},
        "channels": {"bank": {**bank, "last_number_url": f"http://127.0.0.1:{port}/c"}},
    }
    path = folder / "zerotail.yaml"
    path.write_text(yaml.safe_dump(content))
    return load(str(path))


def test_a_silent_receiver_costs_one_patience_and_says_nothing(silent: int, tmp_path: Path) -> None:
    configuration = configured(tmp_path, silent)
    began = time.monotonic()
    assert ask_channels(configuration, "") == {}
    assert time.monotonic() - began < 8, "of sixteen partitions one is asked"


def test_nobody_there_says_nothing(tmp_path: Path) -> None:
    assert ask_channels(configured(tmp_path, 1), "") == {}


def test_a_copy_that_cannot_be_compared_counts_as_one_that_may_hold_more(configuration: Configuration) -> None:
    """Nobody listens at these addresses any more, although both have answered a moment ago."""
    seen = {EAST: observed(standing(timeline=Timeline(2))), WEST: observed(standing(timeline=None))}
    found = dict(world._compared(configuration, seen, holds_more_perhaps))
    assert found == {WEST: Surplus(Lsn(1000), None, Lsn(1000), replayed=False)}
    assert not found[WEST].nothing
