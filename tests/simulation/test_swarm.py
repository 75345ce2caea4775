"""Random runs: thousands of crashes, no rule broken; the same seed is the same run everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.seeds import seed_of
from zerotail.core.receiver import ReceiverClass
from zerotail.simulation.__main__ import main
from zerotail.simulation.campaign import Failure, campaign, run_plan
from zerotail.simulation.exhaustive import EVERY_RECEIVER, exhaust, smallest
from zerotail.simulation.outside import CLAIMED_BACK, CLAIMED_ONLY, OVERLAP, Kind
from zerotail.simulation.plan import LOSE_ANSWER, Fault, Plan, draw
from zerotail.simulation.shrink import shrink, tell

ROOT = Path(__file__).parents[2]
SEED = seed_of("swarm")


def _told(failures: list[Failure]) -> list[str]:
    return [f"seed {one.plan.seed}: {one.rule} {one.violations[0].text}" for one in failures]


@pytest.mark.fast
def test_no_rule_breaks_in_some_thousand_crashes_and_rare_states_are_reached() -> None:
    """A swarm that never gets into trouble proves nothing."""
    tally = campaign(SEED, runs=600, processes=2)
    assert not tally.failures, _told(tally.failures)
    assert tally.crashes >= 16_000
    assert tally.checked > 0
    assert {
        CLAIMED_BACK,
        CLAIMED_ONLY,
        "a replica lacks what the other site has",
        "doubt settled by an operator",
        "process superseded",
        "request arrived late",
        "rows lost by a failover inside a site",
        "site destroyed",
        "zombie ended by itself",
    } <= set(tally.marks)
    assert len(tally.reached) > 1000


@pytest.mark.fast
@pytest.mark.parametrize(
    ("receiver", "kind"),
    [
        (ReceiverClass.R0, Kind.HTTP),
        (ReceiverClass.R0, Kind.POSTGRES),
        (ReceiverClass.R1, Kind.HTTP),
        (ReceiverClass.R2, Kind.HTTP),
    ],
)
def test_a_batch_that_begins_with_what_was_taken_is_sent_and_does_no_harm(receiver: ReceiverClass, kind: Kind) -> None:
    """An answer is lost, and more is owed meanwhile. It is too rare in the swarm to be left to chance."""
    met = 0
    for seed in range(SEED, SEED + 30):
        faults = tuple(Fault(step, LOSE_ANSWER) for step in range(1 + seed % 5, 400, 5))
        plan = Plan(
            seed, clients=3, instructions=24, receiver=receiver, kind=kind, window=5, horizon=400, faults=faults
        )
        run, found = run_plan(plan)
        assert not found, (seed, found)
        met += run.world.marks.get(OVERLAP, 0)
    assert met > 0


@pytest.mark.fast
def test_the_checker_agrees_with_the_quick_judge_on_clean_runs() -> None:
    for seed in range(SEED, SEED + 40):
        run, found = run_plan(draw(seed), full=True)
        assert not found, (seed, found)
        assert run.quiet_at is not None


@pytest.mark.fast
@pytest.mark.parametrize(("receiver", "kind"), EVERY_RECEIVER)
def test_every_crash_point_of_a_small_run_is_survived(receiver: ReceiverClass, kind: Kind) -> None:
    tally = exhaust(smallest(receiver, kind=kind), 1)
    assert tally.runs > 300
    assert not tally.failures, _told(tally.failures)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_pair_of_crash_points_of_the_smallest_run_is_survived() -> None:
    tally = exhaust(smallest(), 2)
    assert tally.runs > 10_000
    assert not tally.failures, _told(tally.failures)


@pytest.mark.fast
@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_same_seed_is_the_same_run_under_another_hash_seed(hash_seed: str) -> None:
    here = campaign(SEED, runs=12)
    command = [sys.executable, "-m", "zerotail.simulation", "--seed", str(SEED), "--runs", "12", "--json"]
    environment = os.environ | {
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": str(ROOT / "src"),
        "TZ": "Asia/Tokyo",
    }
    there = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert there["trace"] == f"{here.trace:016x}"
    assert there["steps"] == here.steps


@pytest.mark.fast
def test_processes_do_not_change_the_outcome() -> None:
    alone, shared = campaign(SEED, runs=60), campaign(SEED, runs=60, processes=2)
    assert (alone.trace, alone.crashes, alone.marks) == (shared.trace, shared.crashes, shared.marks)


@pytest.mark.fast
def test_a_failure_is_made_small_and_told() -> None:
    found = campaign(100, runs=200, bug="orphan-filter-off", stop_at_failure=True).failures[0]
    small = shrink(found, "orphan-filter-off")
    assert small.rule == found.rule
    assert len(small.plan.faults) < len(found.plan.faults)
    assert len(small.plan.faults) <= 8
    story = tell(small, "orphan-filter-off")
    assert any("database fails over inside" in line for line in story)
    assert any(f"{found.rule}: " in line for line in story)


@pytest.mark.fast
def test_the_command_says_what_broke_and_how_to_see_it_again() -> None:
    result = CliRunner().invoke(main, ["--bug", "gate-missing", "--runs", "40"])
    assert result.exit_code == 1
    assert "S8" in result.stdout
    assert "python -m zerotail.simulation --seed" in result.stdout
    assert "--bug gate-missing --shrink" in result.stdout


@pytest.mark.fast
def test_the_command_ends_well_when_nothing_broke() -> None:
    result = CliRunner().invoke(main, ["--seed", "5", "--runs", "10"])
    assert result.exit_code == 0, result.output
    assert "violations: 0" in result.stdout


@pytest.mark.fast
def test_a_run_without_faults_comes_to_rest_with_everything_sent() -> None:
    run, found = run_plan(Plan(seed=3, instructions=6), full=True)
    assert not found
    assert run.schedule.crashes == 0
    assert [one.number for one in next(iter(run.world.receivers.values())).accepted]
