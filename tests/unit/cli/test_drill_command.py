"""Wrong calls of `zerotail drill`: one message, exit code 2, and no lab is brought up for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import call
from zerotail.drill.result import DrillLine, DrillSummary, write_result

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("ZT117", ("run", "no-such-loss")),
        ("ZT118", ("report", "{empty}")),
        ("ZT121", ("run", "site-loss", "--dir", "{used}")),
        ("ZT121", ("run", "acks", "--dir", "{used}")),
        ("ZT123", ("run", "acks", "--receiver", "R1")),
        ("ZT123", ("run", "site-loss", "--runs", "3")),
    ],
)
def test_a_wrong_call_says_what_is_wrong(tmp_path: Path, code: str, words: tuple[str, ...]) -> None:
    empty, used = tmp_path / "empty", tmp_path / "used"
    empty.mkdir()
    (used / "history").mkdir(parents=True)
    said = call("drill", *(word.format(empty=empty, used=used) for word in words), "--json")
    assert said.code == 2
    assert said.answer("error")["code"] == code
    assert not any((used / "history").iterdir())


def test_every_scenario_says_beforehand_what_must_bite_and_what_may_be_found() -> None:
    shown = call("drill", "list", "--json").answer("drill-list")["scenarios"]
    planned = {one["name"] for one in shown if not one["faults"]}
    assert planned == {"handover-under-load", "failback-cycle"}
    assert all("nothing" in one["allowed"] for one in shown)
    said = call("drill", "list").out
    assert "allowed in handover-under-load, failback-cycle: all receiver classes: nothing" in said
    assert "R3 with policy hold: listed doubts only" in said


def test_the_demo_does_not_write_into_the_history_of_another_run(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    said = call("demo", "--dir", str(tmp_path))
    assert said.code == 2
    assert "holds the history of another drill" in said.err


def test_a_report_on_a_series_tells_all_of_it(tmp_path: Path) -> None:
    lines = (
        DrillLine("site-loss", "R2", 1, "passed", 30.0, 2.1, "a"),
        DrillLine("demo", "R2", 1, "failed", 60.0, None, "b", "it stood still"),
    )
    write_result(tmp_path / "summary.json", "drill-runs", DrillSummary(1, 2, 1, 1, 0, lines))
    said = call("drill", "report", str(tmp_path))
    assert said.code == 1
    assert "outage 2.10 s" in said.out
    assert "it stood still" in said.out
    assert "2 drills: 1 passed, 1 failed, 0 undecided" in said.out
    assert call("drill", "report", str(tmp_path), "--json").answer("drill-runs")["failed"] == 1


def test_a_report_on_a_series_that_is_not_finished_names_a_drill_of_it(tmp_path: Path) -> None:
    played = tmp_path / "001-site-loss-R2-1"
    played.mkdir()
    (played / "result.json").touch()
    said = call("drill", "report", str(tmp_path))
    assert said.code == 2
    assert "a series of drills that is not finished: 1 have a result." in said.err
    assert f"zerotail drill report {played}" in said.err
    assert "Errno" not in said.err
