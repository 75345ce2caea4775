"""Many drills: chosen by the seed alone, one line each, and one that cannot run counts as failed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from zerotail.drill.many import CLASSES, Planned, plan_all, plan_random, read_result, run_all
from zerotail.drill.result import DrillLine, DrillResult, write_result
from zerotail.drill.run import DrillSettings
from zerotail.drill.scenarios import SCENARIOS, Scenario
from zerotail.drill.theatre import Theatre, unused_folder
from zerotail.errors import Misused, Unavailable

pytestmark = pytest.mark.fast

SETTINGS = DrillSettings(seed=5, rate=100.0)


def result(verdict: str) -> DrillResult:
    return DrillResult(
        *("site-loss", 1, verdict, 0, 0, 0, 0, 10, 10, None, None, None, 1.5, (), "", "", "R2", 100.0, 30.0),
        reasons=("open: it did not bite",),
    )


def test_the_same_seed_plays_the_same_drills() -> None:
    assert plan_random(7, 40, None) == plan_random(7, 40, None)
    assert plan_random(7, 40, None) != plan_random(8, 40, None)


def test_every_scenario_is_drawn_before_one_is_drawn_again_and_every_class_of_receiver_is() -> None:
    planned = plan_random(3, 4 * len(SCENARIOS), None)
    assert Counter(one.scenario for one in planned) == dict.fromkeys(SCENARIOS, 4)
    assert {one.receiver for one in planned} == set(CLASSES)
    assert {one.receiver for one in plan_random(3, 5, "R1")} == {"R1"}
    assert {one.scenario for one in plan_all(1, None)} == set(SCENARIOS)


def test_drills_that_can_share_a_stage_come_one_behind_the_other() -> None:
    kinds = [(one.receiver, SCENARIOS[one.scenario].replayed) for one in plan_random(3, 60, None)]
    assert len(list(groupby(kinds))) == len(set(kinds))


@pytest.mark.parametrize(("verdict", "stages"), [("passed", 1), ("failed", 2), ("undecided", 2)])
def test_a_scene_that_did_not_pass_leaves_nothing_to_the_next(
    verdict: str, stages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def build(*_: object) -> str:
        built.append("a stage")
        return built[-1]

    monkeypatch.setattr(Theatre, "_build", build)
    monkeypatch.setattr("zerotail.drill.theatre.play_next", lambda *_: result(verdict))
    with Theatre(tmp_path, SETTINGS) as stage:
        stage._kind = ("R2", False)
        for name in ("site-loss", "demo"):
            stage.play(SCENARIOS[name], "R2", 1, tmp_path / name)
    assert len(built) == stages


def test_lines_and_sums_say_what_became_of_each_drill(tmp_path: Path) -> None:
    planned = [Planned(name, "R2", 1) for name in ("site-loss", "demo", "zombie-site", "kafka-loss")]
    verdicts = {"site-loss": "passed", "demo": "failed", "zombie-site": "undecided"}
    told: list[DrillLine] = []

    def run_one(one: Planned, folder: Path) -> DrillResult:
        assert folder.parent == tmp_path / "runs"
        if one.scenario not in verdicts:
            raise Unavailable("no lab")
        return result(verdicts[one.scenario])

    summary = run_all(planned, tmp_path / "runs", run_one, told.append, SETTINGS)
    assert (summary.runs, summary.passed, summary.failed, summary.undecided) == (4, 1, 2, 1)
    assert list(summary.lines) == told
    assert [line.why for line in told] == ["", "open: it did not bite", "open: it did not bite", "no lab"]


def test_a_drill_that_breaks_as_nobody_expected_counts_as_failed_and_the_next_one_is_run(tmp_path: Path) -> None:
    def run_one(one: Planned, folder: Path) -> DrillResult:
        if one.scenario == "site-loss":
            raise KeyError("a number that nobody knows")
        return result("passed")

    planned = [Planned("site-loss", "R2", 1), Planned("demo", "R2", 1)]
    summary = run_all(planned, tmp_path, run_one, lambda _line: None, SETTINGS)
    assert [line.verdict for line in summary.lines] == ["failed", "passed"]
    assert summary.lines[0].why == "KeyError: 'a number that nobody knows'; see error.txt"
    assert "in run_one" in (Path(summary.lines[0].folder) / "error.txt").read_text()


def test_a_series_that_was_broken_off_goes_on_behind_what_has_a_result(tmp_path: Path) -> None:
    planned = [Planned("site-loss", "R2", 1), Planned("demo", "R2", 2), Planned("zombie-site", "R2", 3)]
    played: list[str] = []

    def run_one(one: Planned, folder: Path) -> DrillResult:
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(one.scenario)
        folder.mkdir()
        found = result("failed" if one.scenario == "demo" else "passed")
        (folder / "result.json").write_bytes(msgspec.json.encode(found))
        return found

    with pytest.raises(KeyboardInterrupt):
        run_all(planned, tmp_path, run_one, lambda _line: None, SETTINGS)
    played.clear()
    summary = run_all(planned, tmp_path, run_one, lambda _line: None, SETTINGS)
    assert played == ["zombie-site"]
    assert [line.verdict for line in summary.lines] == ["passed", "failed", "passed"]
    with pytest.raises(Misused, match="--rate 100 --strategy auto"):
        run_all(planned, tmp_path, run_one, lambda _line: None, DrillSettings(seed=5, rate=200.0))


@pytest.mark.parametrize(
    "other", [replace(SETTINGS, count=5_000), replace(SETTINGS, rebuild_state=True), replace(SETTINGS, strategy="skip")]
)
def test_a_series_goes_on_with_the_settings_it_began_with(other: DrillSettings, tmp_path: Path) -> None:
    planned = [Planned("site-loss", "R2", 1)]
    folder = tmp_path / "001-site-loss-R2-1"
    folder.mkdir()
    write_result(folder / "result.json", "drill-run", result("passed"))
    with pytest.raises(Misused, match="holds a series with --rate 100 --strategy auto"):
        run_all(planned, tmp_path, must_not_run, lambda _line: None, other)
    assert run_all(planned, tmp_path, must_not_run, lambda _line: None, SETTINGS).passed == 1


def test_a_scenario_that_rebuilds_the_state_anyway_is_no_other_setting(tmp_path: Path) -> None:
    name = "takeover-killed-at-every-step"
    folder = tmp_path / f"001-{name}-R2-1"
    folder.mkdir()
    write_result(folder / "result.json", "drill-run", replace(result("passed"), rebuild_state=True))
    assert run_all([Planned(name, "R2", 1)], tmp_path, must_not_run, lambda _line: None, SETTINGS).passed == 1


@pytest.mark.parametrize("error", [KeyError("nobody knows"), Unavailable("no lab")])
def test_a_drill_that_broke_off_stays_failed_when_the_series_goes_on(error: Exception, tmp_path: Path) -> None:
    def break_off(one: Planned, folder: Path) -> DrillResult:
        raise error

    planned = [Planned("site-loss", "R2", 1)]
    assert run_all(planned, tmp_path, break_off, lambda _line: None, SETTINGS).failed == 1
    again = run_all(planned, tmp_path, must_not_run, lambda _line: None, SETTINGS)
    assert again.failed == 1
    assert error.args[0] in again.lines[0].why
    assert again.lines[0].why.endswith("; see error.txt")


def test_a_result_in_a_file_carries_its_schema_and_can_be_read_again(tmp_path: Path) -> None:
    write_result(tmp_path / "result.json", "drill-run", result("passed"))
    assert msgspec.json.decode((tmp_path / "result.json").read_bytes())["schema"] == "zerotail/drill-run/1"
    assert read_result(tmp_path) == result("passed")


def must_not_run(one: Planned, folder: Path) -> DrillResult:
    raise AssertionError(f"{one.scenario} was played before")


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda one: one.name)
def test_every_scenario_states_beforehand_what_may_be_found_and_which_faults_must_bite(scenario: Scenario) -> None:
    planned = scenario.name in ("handover-under-load", "failback-cycle")
    assert scenario.is_planned == planned == (not scenario.faults)
    assert scenario.allowed.startswith("all receiver classes:" if planned else "R0, R1, R2:")


def test_a_series_that_goes_on_does_not_write_into_the_history_of_an_earlier_stage(tmp_path: Path) -> None:
    assert unused_folder(tmp_path).name == "stage-1"
    for name in ("stage-1", "stage-2"):
        (tmp_path / name / "history").mkdir(parents=True)
    assert unused_folder(tmp_path).name == "stage-3"
