"""`python -m zerotail.simulation`: crash the simulated pair of sites, and say what broke."""

from __future__ import annotations

import json
import multiprocessing
import sys

import click

from zerotail.simulation import bugs
from zerotail.simulation.campaign import Failure, Tally, campaign
from zerotail.simulation.exhaustive import EVERY_RECEIVER, exhaust, smallest
from zerotail.simulation.shrink import shrink, tell


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seed", default=0, show_default=True, help="The first seed.")
@click.option("--crashes", default=0, help="Go on until so many crashes.")
@click.option("--runs", default=0, help="Go on for so many runs.")
@click.option("--processes", default=1, show_default=True, help="Run on so many cores.")
@click.option("--bug", type=click.Choice(sorted(bugs.BUGS)), help="Plant a named bug; stop when it shows.")
@click.option("--shrink", "small", is_flag=True, help="Make the first failure small and tell it as a story.")
@click.option("--exhaustive", is_flag=True, help="Every crash point of a small run, alone and in pairs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(
    seed: int,
    crashes: int,
    runs: int,
    processes: int,
    bug: str | None,
    small: bool,
    exhaustive: bool,
    as_json: bool,
) -> None:
    """Simulate two sites, crash everything, and judge what reached the outside.

    Exit code 0: no rule broke. 1: one did.
    """
    if exhaustive:
        tally = _exhaust(processes)
    else:
        if not crashes and not runs:
            runs = 1000
        if bug and not seed:
            seed = bugs.BUGS[bug].seed
        tally = campaign(
            seed,
            crashes=crashes,
            runs=runs,
            processes=processes,
            bug=bug,
            stop_at_failure=small or bug is not None,
            progress=not as_json,
        )
    if as_json:
        click.echo(json.dumps(_as_json(tally, seed)))
    else:
        _report(tally, seed, bug, small)
    sys.exit(1 if tally.failures else 0)


def _exhaust(processes: int) -> Tally:
    """Depth 1 for every receiver, depth 2 for R2, shared among the processes."""
    jobs = [(smallest(receiver, 4, kind=kind), 1, (0, 1)) for receiver, kind in EVERY_RECEIVER]
    jobs += [(smallest(), 2, (part, 16)) for part in range(16)]
    tally = Tally()
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for part in pool.starmap(_exhaust_part, jobs, chunksize=1):
            tally.add(part)
    return tally


def _exhaust_part(*job: object) -> Tally:
    base, depth, share = job
    return exhaust(base, depth, share=share)  # type: ignore[arg-type]


def _report(tally: Tally, seed: int, bug: str | None, small: bool) -> None:
    click.echo(
        f"seeds {seed} to {seed + tally.runs - 1}: {tally.runs:,} runs, {tally.crashes:,} crashes, "
        f"{tally.steps:,} steps in {tally.seconds:.1f} s"
    )
    click.echo(f"{tally.checked:,} runs also judged by the checker; trace {tally.trace:016x}")
    click.echo(f"reached {len(tally.reached):,} pairs of process state and crash point; sometimes:")
    for name in sorted(tally.marks):
        click.echo(f"  {tally.marks[name]:>9,}  {name}")
    click.echo(f"violations: {len(tally.failures)}")
    again = f" --bug {bug}" if bug else ""
    for failure in tally.failures[:10]:
        click.echo(f"  seed {failure.plan.seed}: {failure.rule} {failure.violations[0].text}")
        click.echo(f"    python -m zerotail.simulation --seed {failure.plan.seed} --runs 1{again} --shrink")
    if small and tally.failures:
        _tell(shrink(tally.failures[0], bug), bug)


def _tell(failure: Failure, bug: str | None) -> None:
    plan = failure.plan
    click.echo(
        f"made small: {len(plan.faults)} faults, {plan.instructions} instructions, "
        f"{plan.producers} producers, {plan.partitions} partitions, "
        f"receiver {plan.receiver.value} ({plan.kind.value})"
    )
    for fault in plan.faults:
        click.echo(f"  step {fault.step}: {fault.kind}")
    for line in tell(failure, bug):
        click.echo(line)


def _as_json(tally: Tally, seed: int) -> dict[str, object]:
    return {
        "schema": "zerotail/simulation/1",
        "seed": seed,
        "runs": tally.runs,
        "crashes": tally.crashes,
        "steps": tally.steps,
        "checked": tally.checked,
        "trace": f"{tally.trace:016x}",
        "seconds": round(tally.seconds, 3),
        "reached": len(tally.reached),
        "marks": dict(sorted(tally.marks.items())),
        "violations": [
            {"seed": failure.plan.seed, "rule": failure.rule, "text": failure.violations[0].text}
            for failure in tally.failures
        ],
    }


if __name__ == "__main__":
    main()
