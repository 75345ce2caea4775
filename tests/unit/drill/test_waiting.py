"""A drill waits for messages as long as they come, and not for ever when they do not."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from zerotail.drill import rehearsal
from zerotail.drill.rehearsal import Rehearsal
from zerotail.errors import Unavailable

pytestmark = pytest.mark.fast

PATIENCE = 0.3
TOTAL = 30


class Slow(Rehearsal):
    """A stage on which one message arrives at each look, up to `most`."""

    most: int
    looks: int = 0

    def accepted(self) -> int:
        self.looks += 1
        return min(self.most, self.looks)

    def _is_drained(self) -> bool:
        return self.looks >= TOTAL <= self.most


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "PATIENCE_SECONDS", PATIENCE)


def stage_with(most: int, rate: float, *, finished: bool = True) -> Slow:
    stage = object.__new__(Slow)
    stage.most, stage.scale = most, 1.0
    business: Any = SimpleNamespace(acknowledged=0, finished=finished, rate=rate)
    stage.business = business
    return stage


def test_the_last_is_waited_for_as_long_as_others_arrive() -> None:
    began = time.monotonic()
    stage_with(TOTAL, rate=1000.0).wait_for_last()
    assert time.monotonic() - began > 2 * PATIENCE, "that took longer than a standstill may"


def test_a_standstill_is_late() -> None:
    with pytest.raises(Unavailable, match="nothing has moved"):
        stage_with(1, rate=1000.0).wait_for_last()


def test_at_a_low_rate_new_ones_have_the_time_they_need() -> None:
    began = time.monotonic()
    stage_with(TOTAL, rate=10.0, finished=False).wait_for_new(20)
    assert time.monotonic() - began > PATIENCE
    stage = stage_with(TOTAL, rate=1000.0, finished=False)
    with pytest.raises(Unavailable, match="20 new messages"):
        stage.wait_for_new(20)
