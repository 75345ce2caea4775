"""`zerotail drill`: rehearsed disasters on real processes, with a verdict."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zerotail.cli.output import json_option, print_answer, print_json, say, tick

if TYPE_CHECKING:
    from zerotail.drill.result import DrillResult

_RUNS = Path("drills")


@click.group("drill", epilog="Example:  zerotail drill run site-loss")
def command() -> None:
    """Rehearsed disasters: two real sites on this machine, load, a fault, a verdict."""


@command.command("list", epilog="Example:  zerotail drill list")
@json_option
def list_scenarios(as_json: bool) -> None:
    """The scenarios."""
    from zerotail.cli.answers import DrillListAnswer, ScenarioShown
    from zerotail.drill.scenarios import SCENARIOS

    if as_json:
        shown = tuple(ScenarioShown(one.name, one.summary) for one in SCENARIOS.values())
        print_json("drill-list", DrillListAnswer(shown))
    else:
        print_answer("\n".join(f"{one.name:<28} {one.summary}" for one in SCENARIOS.values()))


@command.command("run", epilog="Example:  zerotail drill run site-loss --rate 2000 --receiver R1")
@click.argument("scenario")
@click.option("--seed", type=int, default=1, show_default=True, help="Noted in the report.")
@click.option(
    "--rate", type=click.FloatRange(1, 50_000), default=1000, show_default=True, help="Instructions a second."
)
@click.option("--receiver", type=click.Choice(["R0", "R1", "R2"]), default="R2", show_default=True, help="Its class.")
@click.option("--dir", "folder", metavar="D", help="Where history and report go; else drills/SCENARIO-TIME.")
@json_option
def run(scenario: str, seed: int, rate: float, receiver: str, folder: str | None, as_json: bool) -> int:
    """Run one scenario and judge it. Exits with 0 when it passed, with 1 when it failed or proves too little."""
    from zerotail.drill.scenarios import SCENARIOS
    from zerotail.errors import Misused

    if scenario not in SCENARIOS:
        raise Misused(f"there is no scenario {scenario!r}.", code="ZT117", tries=["zerotail drill list"])
    result = play(scenario, seed, rate, receiver, folder)
    if as_json:
        print_json("drill-run", result)
    else:
        print_answer(told(result))
    return 0 if result.verdict == "passed" else 1


@command.command("report", epilog="Example:  zerotail drill report drills/site-loss-20261115-181500")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@json_option
def report(folder: Path, as_json: bool) -> int:
    """What an earlier run found, and where its page is."""
    import msgspec

    from zerotail.drill.result import DrillResult
    from zerotail.errors import Misused

    try:
        result = msgspec.json.decode((folder / "result.json").read_bytes(), type=DrillResult)
    except (OSError, msgspec.MsgspecError) as error:
        raise Misused(f"{folder} holds no result of a drill: {error}.", code="ZT118") from error
    if as_json:
        print_json("drill-run", result)
    else:
        print_answer(told(result))
    return 0 if result.verdict == "passed" else 1


def play(scenario: str, seed: int, rate: float, receiver: str, folder: str | None) -> DrillResult:
    """Bring up a lab, run the scenario in it, take it down."""
    import time

    from zerotail.cli.progress import steps_display
    from zerotail.drill.run import run_drill
    from zerotail.drill.scenarios import SCENARIOS
    from zerotail.lab.layout import LabSettings
    from zerotail.lab.up import temporary_lab

    def plan(where: Path) -> LabSettings:
        return LabSettings(where, receiver_class=receiver, partitions=2)

    files = Path(folder) if folder else _RUNS / f"{scenario}-{time.strftime('%Y%m%d-%H%M%S')}"
    with ExitStack() as while_it_comes_up:
        tell_step = while_it_comes_up.enter_context(steps_display("lab up"))
        with temporary_lab(plan, lambda step: tell_step(step.part, step.done)) as layout:
            while_it_comes_up.close()
            began = time.monotonic()
            result = run_drill(
                layout,
                SCENARIOS[scenario],
                seed=seed,
                rate=rate,
                folder=files.resolve(),
                tell=lambda line: say(f"{time.monotonic() - began:6.1f} s  {line}"),
            )
    return result


def told(result: DrillResult) -> str:
    """The result, for people."""

    def seconds(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f} s"

    ok = result.verdict == "passed"
    return "\n".join(
        [
            f"{tick(ok, sys.stdout)} {result.verdict.upper()}: {result.lost} lost, {result.duplicated} duplicated, "
            f"{result.reordered} reordered, {result.in_doubt} in doubt",
            f"  submitted        {result.submitted:,} instructions were acknowledged behind the gate",
            f"  received         {result.received:,} messages outside",
            *(f"  fault            {one.name}: {'; '.join(one.evidence)}" for one in result.faults),
            f"  promoted         {seconds(result.promote_seconds)} after the command",
            f"  first new one    {seconds(result.takeover_seconds)} after the command, "
            f"{seconds(result.outage_seconds)} after the fault",
            *(f"  judge            {reason}" for reason in result.reasons),
            f"  report           {result.report}",
        ]
    )
