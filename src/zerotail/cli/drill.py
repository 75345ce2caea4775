"""`zerotail drill`: rehearsed disasters on real processes, with a verdict."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from zerotail.cli.output import json_option, print_answer, print_json, say, tick
from zerotail.cli.takeover import STRATEGIES
from zerotail.errors import Misused

if TYPE_CHECKING:
    from zerotail.drill.many import Planned
    from zerotail.drill.result import DrillLine, DrillResult, DrillSummary
    from zerotail.drill.run import DrillSettings

_RUNS = Path("drills")
ACKS = "acks"
_CLASSES = ["R0", "R1", "R2", "R3"]


@click.group("drill", epilog="Example:  zerotail drill run site-loss")
def command() -> None:
    """Rehearsed disasters: two real sites on this machine, load, a fault, a verdict."""


@command.command("list", epilog="Example:  zerotail drill list")
@json_option
def list_scenarios(as_json: bool) -> None:
    """The scenarios."""
    from zerotail.cli.answers import DrillListAnswer, ScenarioShown
    from zerotail.drill.durability.drill import ALLOWED, SUMMARY
    from zerotail.drill.durability.faults import FAULTS
    from zerotail.drill.scenarios import SCENARIOS

    shown = (
        *(ScenarioShown(one.name, one.summary, one.faults, one.allowed) for one in SCENARIOS.values()),
        ScenarioShown(ACKS, SUMMARY, tuple(one.name for one in FAULTS), ALLOWED),
    )
    if as_json:
        print_json("drill-list", DrillListAnswer(shown))
        return
    lines = [f"{one.name:<28} {one.summary}" for one in shown]
    lines.append("what must bite in each of them: zerotail drill list --json")
    for allowed in dict.fromkeys(one.allowed for one in shown):
        names = [one.name for one in shown if one.allowed == allowed]
        lines.append(f"allowed in {', '.join(names) if len(names) < 5 else 'all others'}: {allowed}")
    print_answer("\n".join(lines))


@command.command("run", epilog="Example:  zerotail drill run site-loss --rate 2000 --receiver R1")
@click.argument("scenario")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Chooses the moment of the fault and what is random."
)
@click.option(
    "--rate", type=click.FloatRange(1, 50_000), default=1000, show_default=True, help="Instructions a second."
)
@click.option("--count", type=click.IntRange(1_000, 10_000_000), help="Instructions in all; else as many as it takes.")
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="auto",
    show_default=True,
    help="How a takeover fills the topics.",
)
@click.option("--rebuild-state", is_flag=True, help="`state: replay`: a takeover makes the state anew and compares it.")
@click.option("--receiver", type=click.Choice(_CLASSES), help="The receiver's class; else R2, at random for `random`.")
@click.option("--runs", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many, for `random`.")
@click.option("--dir", "folder", metavar="D", help="Where history and report go; else drills/SCENARIO-TIME.")
@json_option
def run(
    scenario: str,
    seed: int,
    rate: float,
    count: int | None,
    strategy: str,
    rebuild_state: bool,
    receiver: str | None,
    runs: int,
    folder: str | None,
    as_json: bool,
) -> int:
    """Run one scenario and judge it: `all` runs each of them, `random` so many by chance, one after the other.

    A series (`all`, `random`) that was broken off goes on when it is asked for again with the same --dir.

    Exits with 0 when it passed, with 1 when it failed or proves too little; several when none has failed.
    """
    from zerotail.drill.many import plan_all, plan_random
    from zerotail.drill.run import DrillSettings
    from zerotail.drill.scenarios import SCENARIOS

    if scenario != "random":
        _require_used(scenario, "runs")
    if scenario == ACKS:
        _require_used(scenario, "rate", "count", "strategy", "rebuild_state", "receiver")
        return _run_acks(seed, files_of(scenario, folder), as_json)
    settings = DrillSettings(seed, rate, count, strategy, rebuild_state)
    if scenario in ("all", "random"):
        planned = plan_all(seed, receiver) if scenario == "all" else plan_random(seed, runs, receiver)
        return _run_many(planned, settings, files_of(scenario, folder), as_json)
    if scenario not in SCENARIOS:
        raise Misused(f"there is no scenario {scenario!r}.", code="ZT117", tries=["zerotail drill list"])
    result = play(scenario, settings, receiver or "R2", files_of(scenario, folder))
    return show_result(result, as_json=as_json)


@command.command("report", epilog="Example:  zerotail drill report drills/site-loss-20261115-181500")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@json_option
def report(folder: Path, as_json: bool) -> int:
    """What an earlier run found, and where its page is; of a series, a line for each drill."""
    from zerotail.drill.many import find_summary, read_result

    summary = find_summary(folder)
    if summary is not None:
        return _tell_many(summary, folder, as_json, [_line_told(line) for line in summary.lines])
    result = read_result(folder)
    return show_result(result, as_json=as_json)


def show_result(result: DrillResult, schema: str = "drill-run", *, as_json: bool) -> int:
    """Print what a drill found; 0 when it passed."""
    if as_json:
        print_json(schema, result)
    else:
        print_answer(_told(result))
    return 0 if result.verdict == "passed" else 1


def _require_used(scenario: str, *options: str) -> None:
    """`Misused` when one of these was typed: the scenario has no use for it."""
    context = click.get_current_context()
    for option in options:
        if context.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            word = f"--{option.replace('_', '-')}"
            raise Misused(f"the drill {scenario} has no use for {word}.", code="ZT123", tries=["zerotail drill list"])


def _run_acks(seed: int, files: Path, as_json: bool) -> int:
    """What an acknowledgement of Kafka is worth: a cluster of its own, no sites."""
    from zerotail.drill.durability.drill import leave_files
    from zerotail.drill.durability.run import EACH_ONCE, run_durability
    from zerotail.drill.run import require_unused

    require_unused(files)
    found = run_durability(replace(EACH_ONCE, seed=seed), lambda line: say(f"drill acks: {line}"))
    result = leave_files(found, seed, files.resolve())
    return show_result(result, as_json=as_json)


def play(scenario: str, settings: DrillSettings, receiver: str, files: Path) -> DrillResult:
    """Bring up a lab, run the scenario in it, take it down."""
    from zerotail.cli.progress import steps_display
    from zerotail.cli.stage_screen import stage_screen
    from zerotail.drill.run import require_unused, run_drill
    from zerotail.drill.scenarios import SCENARIOS
    from zerotail.lab.layout import LabSettings
    from zerotail.lab.up import temporary_lab

    require_unused(files)

    def plan(where: Path) -> LabSettings:
        return LabSettings(where, receiver_class=receiver, partitions=2)

    with ExitStack() as while_it_comes_up:
        tell_step = while_it_comes_up.enter_context(steps_display("lab up"))
        with temporary_lab(plan, lambda step: tell_step(step.part, step.done)) as layout:
            while_it_comes_up.close()
            with stage_screen() as screen:
                return run_drill(
                    layout, SCENARIOS[scenario], settings, files.resolve(), screen.tell, watch=screen.watch
                )


def files_of(scenario: str, folder: str | None) -> Path:
    """Where a run's files go."""
    import time

    return Path(folder) if folder else _RUNS / f"{scenario}-{time.strftime('%Y%m%d-%H%M%S')}"


def _run_many(planned: list[Planned], settings: DrillSettings, files: Path, as_json: bool) -> int:
    """One drill after the other, a line for each; 1 when one has failed."""
    from zerotail.cli.progress import current_line
    from zerotail.drill.many import SUMMARY, run_all
    from zerotail.drill.result import write_result
    from zerotail.drill.scenarios import SCENARIOS
    from zerotail.drill.theatre import Theatre

    files = files.resolve()
    with current_line() as tell, Theatre(files, settings, tell) as theatre:

        def run_one(one: Planned, folder: Path) -> DrillResult:
            return theatre.play(SCENARIOS[one.scenario], one.receiver, one.seed, folder)

        summary = run_all(planned, files, run_one, lambda line: say(_line_told(line)), settings)
    write_result(files / SUMMARY, "drill-runs", summary)
    return _tell_many(summary, files, as_json, [])


def _tell_many(summary: DrillSummary, files: Path, as_json: bool, lines: list[str]) -> int:
    """The sums, below `lines`; 1 when a drill has failed."""
    from zerotail.drill.many import SUMMARY

    if as_json:
        print_json("drill-runs", summary)
    else:
        sums = (
            f"{tick(not summary.failed, sys.stdout)} {summary.runs} drills: {summary.passed} passed, "
            f"{summary.failed} failed, {summary.undecided} undecided; {files / SUMMARY}"
        )
        print_answer("\n".join([*lines, sums]))
    return 1 if summary.failed else 0


def _line_told(line: DrillLine) -> str:
    outage = "–" if line.outage_seconds is None else f"{line.outage_seconds:.2f} s"
    head = f"{line.verdict:<10} {line.scenario:<30} {line.receiver}  seed {line.seed:<6} {line.seconds:5.1f} s"
    return f"{head}  outage {outage}  {line.why}".rstrip()


def _told(result: DrillResult) -> str:
    """The result, for people."""
    if result.scenario == ACKS:
        return _told_acks(result)

    def seconds(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f} s"

    ok = result.verdict == "passed"
    in_series = result.own_submitted is not None and result.own_submitted != result.submitted
    own = f", {result.own_submitted:,} of them in this drill" if in_series else ""
    return "\n".join(
        [
            f"{tick(ok, sys.stdout)} {result.verdict.upper()}: {result.lost} lost, {result.duplicated} duplicated, "
            f"{result.reordered} reordered, {result.in_doubt} in doubt",
            f"  submitted        {result.submitted:,} instructions were acknowledged behind the gate{own}",
            f"  received         {result.received:,} messages outside",
            *(f"  fault            {one.name}: {'; '.join(one.evidence)}" for one in result.faults),
            f"  promoted         {seconds(result.promote_seconds)} after the command",
            f"  first new one    {seconds(result.takeover_seconds)} after the command, "
            f"{seconds(result.outage_seconds)} after the fault",
            *(f"  judge            {reason}" for reason in result.reasons),
            f"  report           {result.report}",
        ]
    )


def _told_acks(result: DrillResult) -> str:
    return "\n".join(
        [
            f"{tick(result.verdict == 'passed', sys.stdout)} {result.verdict.upper()}: {result.lost} lost, "
            f"{result.duplicated} duplicated, with settings that promise that nothing is",
            f"  acknowledged     {result.submitted:,} records with these settings; {result.in_doubt:,} got no answer",
            f"  found            {result.received:,} of them in the log",
            *(f"  fault            {one.name}: {'; '.join(one.evidence) or 'did not bite'}" for one in result.faults),
            *(f"  judge            {reason}" for reason in result.reasons),
            f"  report           {result.report}",
        ]
    )
