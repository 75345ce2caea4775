"""Disasters on real processes, one after the other on the same two sites: each is judged, and the judges find nothing.

The sites change their roles from scene to scene and the history grows, so later scenes have a longer past. They are
chosen so that each promise of the system breaks at least one of them when the code behind it is spoiled; see
docs/drills.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from zerotail.drill.run import DrillSettings
from zerotail.drill.scenarios import SCENARIOS
from zerotail.drill.theatre import Theatre

pytestmark = [pytest.mark.servers, pytest.mark.slow]

SETTINGS = DrillSettings(rate=300, rebuild_state=True, scale=0.3)
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


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    with Theatre(tmp_path_factory.mktemp("drills"), SETTINGS, tell=print) as theatre:
        yield theatre


@pytest.mark.parametrize("scene", SCENES)
def test_nothing_is_lost_doubled_or_out_of_order_after(scene: str, theatre: Theatre) -> None:
    result = theatre.play(SCENARIOS[scene], "R2", seed=1, folder=theatre.folder / scene)
    assert result.verdict == "passed", result.reasons
    assert (result.lost, result.duplicated, result.reordered, result.in_doubt) == (0, 0, 0, 0)
    assert all(fault.bit and fault.evidence for fault in result.faults)
    page = Path(result.report).read_text()
    assert "PASSED" in page
    assert not any(mark in page for mark in ("src=", "href=", "<script")), "the page refers to nothing outside"
