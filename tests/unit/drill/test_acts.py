"""Acts of a drill: their steps have the names that every other command prints, whoever carried them out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from zerotail.core.identity import Epoch, SiteName
from zerotail.core.takeover import Step
from zerotail.drill.acts import take_steps
from zerotail.drill.commands import CLAIM_LANES, TAKEOVER_STEPS
from zerotail.operate.notebook import Note, StepNote
from zerotail.operate.plan import STEP_NAMES

pytestmark = pytest.mark.fast

BEGUN = datetime(2026, 11, 18, 3, 40, tzinfo=UTC)


def test_steps_of_a_note_are_called_as_everywhere_and_the_promotion_is_timed() -> None:
    done = [Step.FENCE, Step.PROMOTE, Step.OPEN_EPOCH, Step.FILL, Step.HANDSHAKE, Step.GO_LIVE]
    steps = tuple(StepNote(Epoch(513), step.value, BEGUN + timedelta(seconds=n)) for n, step in enumerate(done, 1))
    stage: Any = SimpleNamespace(steps=[], promoted_at=None)
    take_steps(stage, Note("takeover", SiteName("west"), SiteName("east"), "plan", "me", (), BEGUN, steps=steps))
    assert [one.step for one in stage.steps] == [STEP_NAMES[step] for step in done]
    assert {one.act for one in stage.steps} == {"takeover to west"}
    assert stage.promoted_at == BEGUN.timestamp() + 2
    assert stage.steps[1].began_at == stage.steps[0].ended_at


def test_a_takeover_is_killed_at_every_step_that_there_is() -> None:
    assert set(TAKEOVER_STEPS) == set(STEP_NAMES.values()) - {STEP_NAMES[Step.STOP_WAITING]}
    assert CLAIM_LANES in TAKEOVER_STEPS
