"""What is left of an interrupted handover: an old primary that has gone on meanwhile is not replaced."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.config import Configuration
from zerotail.core.epoch import Phase
from zerotail.core.identity import Lsn
from zerotail.errors import Refused
from zerotail.operate import handover
from zerotail.operate.act import Operator
from zerotail.operate.handover import resume_handover
from zerotail.operate.notebook import Note, Notebook, now
from zerotail.operate.world import World
from zerotail.postgres import shutdown

pytestmark = pytest.mark.fast

STOPPED = Note("handover", WEST, EAST, "a plan", "somebody", (), now(), stopped_at=Lsn(900))
ALONE = Note("takeover", EAST, WEST, "another", "nightshift", ("--accept-lost-site west",), now(), finished_at=now())


@pytest.fixture(autouse=True)
def the_copy_has_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """West's log ends with the checkpoint with which east shut down."""
    monkeypatch.setattr(shutdown, "find_end", lambda *_: STOPPED.stopped_at)


@pytest.fixture
def operator(configuration: Configuration, tmp_path: Path) -> Operator:
    """One whose handover to west was killed when east's database had stopped."""
    notebook = Notebook(tmp_path / "notes")
    notebook.folder.mkdir()
    notebook.write(STOPPED)
    return Operator(configuration, notebook, "somebody")


def copy_that_says(phase: Phase) -> World:
    """West follows nobody any more, and east is silent."""
    return World({EAST: None, WEST: observed(standing(site=EAST, phase=phase, timeline=None))})


def test_a_copy_that_has_seen_it_live_again_is_refused(operator: Operator) -> None:
    with pytest.raises(Refused, match="has gone on since it was told to stop") as refused:
        resume_handover(operator, copy_that_says(Phase.LIVE), WEST)
    assert (refused.value.code, "is live, not drained" in refused.value.why) == ("ZT426", True)


def test_so_is_one_that_has_not_seen_it_when_the_notes_say_so(operator: Operator) -> None:
    operator.notebook.write(ALONE)
    with pytest.raises(Refused, match="has gone on since it was told to stop") as refused:
        resume_handover(operator, copy_that_says(Phase.DRAINING), WEST)
    assert "made the active site again" in refused.value.why
    assert "nightshift" in refused.value.why


def test_a_takeover_from_before_says_nothing(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = STOPPED.begun_at - timedelta(hours=1)
    operator.notebook.write(msgspec.structs.replace(ALONE, begun_at=earlier, finished_at=earlier))
    monkeypatch.setattr(handover, "_finish", lambda *_: "finished")
    assert resume_handover(operator, copy_that_says(Phase.DRAINING), WEST) == "finished"  # type: ignore[comparison-overlap]
