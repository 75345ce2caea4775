"""What a drill shows below its story."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from zerotail.cli.stage_screen import EXPOSED, drawn, rates_of, sparkline, stage_screen

pytestmark = pytest.mark.fast


def test_a_rate_is_what_arrived_between_two_looks() -> None:
    assert rates_of([(1.0, 100), (1.5, 150), (2.5, 150)]) == [100.0, 0.0]


def test_an_outage_is_a_blank_and_whatever_arrives_is_seen() -> None:
    assert sparkline([1000.0, 500.0, 0.0, 1.0, 1000.0]) == "█▄ ▁█"


def test_nothing_at_all_is_blank() -> None:
    assert sparkline([0.0, 0.0]) == "  "


def test_where_nothing_can_be_redrawn_the_story_is_told_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with stage_screen() as screen:
        screen.tell("site-loss [east]")
    assert capsys.readouterr().err.endswith(" s  site-loss [east]\n")


@pytest.mark.parametrize("exposed", [True, False])
def test_the_panel_says_when_the_active_site_has_no_second_copy(exposed: bool) -> None:
    stage: Any = SimpleNamespace(active="west", standby="east", business=SimpleNamespace(acknowledged=7))
    shown = StringIO()
    Console(file=shown, width=120).print(drawn(stage, [(1.0, 5)], exposed=exposed))
    assert (EXPOSED in shown.getvalue()) is exposed
    assert "west" in shown.getvalue()
