"""The follower of a standby: warmth is a help and no condition, and its end is told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from zerotail.errors import Refused
from zerotail.spark import following
from zerotail.spark.following import Following

pytestmark = pytest.mark.fast


def start(_checkpoint: str) -> NoReturn:
    raise Refused("another site is at work.")


def test_a_follower_whose_warm_up_fails_follows_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warm_up(_spark: object) -> NoReturn:
        raise Py4JError("a task failed")

    monkeypatch.setattr(following, "warm_up", warm_up)
    told: list[str] = []
    part: Any = SimpleNamespace(name="follower", start=start, close=lambda: told.append("closed"))
    one = Following(None, part, tmp_path, told.append)  # type: ignore[arg-type]
    one.begin()
    one.close()
    assert told == ["the follower has ended: another site is at work.", "closed"]
