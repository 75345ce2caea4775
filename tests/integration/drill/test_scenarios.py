"""Disasters on real processes, one after the other on the same two sites: each is judged, and the judges find nothing.

The sites change their roles from scene to scene and the history grows, so later scenes have a longer past. They are
chosen so that each promise of the system breaks at least one of them when the code behind it is spoiled; see
docs/drills.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from zerotail.drill.example import prepare_example
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.result import DrillResult
from zerotail.drill.run import DrillSettings, new_stage, play_next
from zerotail.drill.scenarios import SCENARIOS
from zerotail.lab.layout import LabSettings
from zerotail.lab.up import temporary_lab

pytestmark = [pytest.mark.servers, pytest.mark.slow]

SETTINGS = DrillSettings(rate=300, scale=0.3)
SCENES = (
    "kafka-loss",
    "standby-loss",
    "handover-under-load",
    "site-loss-during-commit-wait",
    "zombie-site",
    "receiver-loses-answers",
    "link-cut-then-loss",
    "database-loss",
)


@dataclass(slots=True)
class Theatre:
    """The stage of this module; a new one after a scene that failed, so that one failure is one failure."""

    folder: Path
    built: ExitStack = field(default_factory=ExitStack)
    stage: Rehearsal | None = None

    def play(self, scene: str) -> DrillResult:
        if self.stage is None:
            self.stage = self._build(scene)
        result = play_next(self.stage, SCENARIOS[scene], SETTINGS, self.folder / scene)
        if result.verdict == "failed":
            self.leave()
        return result

    def leave(self) -> None:
        self.built.close()
        self.stage = None

    def _build(self, scene: str) -> Rehearsal:
        layout = self.built.enter_context(temporary_lab(lambda where: LabSettings(where, partitions=2)))
        prepare_example(layout, replayed=True)
        stage = new_stage(layout, SETTINGS, self.folder / f"before-{scene}", print)
        self.built.callback(stage.end)
        stage.begin()
        stage.business.stop()
        return stage


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    theatre = Theatre(tmp_path_factory.mktemp("drills"))
    yield theatre
    theatre.leave()


@pytest.mark.parametrize("scene", SCENES)
def test_nothing_is_lost_doubled_or_out_of_order_after(scene: str, theatre: Theatre) -> None:
    result = theatre.play(scene)
    assert result.verdict == "passed", result.reasons
    assert (result.lost, result.duplicated, result.reordered, result.in_doubt) == (0, 0, 0, 0)
    assert all(fault.bit and fault.evidence for fault in result.faults)
    page = Path(result.report).read_text()
    assert "PASSED" in page
    assert not any(mark in page for mark in ("src=", "href=", "<script")), "the page refers to nothing outside"
