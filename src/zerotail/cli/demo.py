"""`zerotail demo`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zerotail.cli.lab_options import bindir_option
from zerotail.cli.output import json_option, print_answer, print_json, tick

if TYPE_CHECKING:
    from zerotail.drill.released_rows import DrillReport

_TITLES = {
    "release": "commit rows at east, each released when west has it",
    "destroy": "kill -9 everything of east at once, remove its data",
    "promote": "promote west",
    "compare": "compare what was released with what west holds",
}


@click.command("demo", epilog="Example:  zerotail demo --rows 5000")
@click.option("--rows", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="Rows to release.")
@click.option("--dir", "folder", metavar="D", help="The lab's folder; a temporary one if not given.")
@bindir_option
@json_option
def command(rows: int, folder: str | None, bindir: str | None, as_json: bool) -> int:
    """The whole story on this machine: two real sites, load, the loss of one, the other goes on.

    Not yet in it: producers, stages and the takeover of a running flow. Today it shows what they will stand on, that
    nothing released behind the gate is lost. Exits with 0 when that held, with 1 when not.
    """
    import tempfile

    from zerotail.cli.progress import bars_display, steps_display
    from zerotail.drill.released_rows import run_drill
    from zerotail.lab.layout import LabSettings
    from zerotail.lab.up import bring_up, take_down

    with tempfile.TemporaryDirectory(prefix="zerotail-demo-") as scratch:
        where = Path(folder).resolve() if folder else Path(scratch) / "lab"
        # A lab that was there before is refused, and is not ours to take down.
        with steps_display("lab up") as tell_step:
            layout = bring_up(LabSettings(where, bindir=bindir), lambda step: tell_step(step.part, step.done))
        try:
            with bars_display(_TITLES) as tell:
                report = run_drill(layout, rows, tell)
        finally:
            take_down(where)
    if as_json:
        print_json("demo", report)
    else:
        print_answer(_told(report))
    return 0 if report.passed else 1


def _told(report: DrillReport) -> str:
    seen = report.comparison
    lines = [
        f"{tick(report.passed, sys.stdout)} {'passed' if report.passed else 'FAILED'}: "
        f"{seen.released} rows were released at east, {len(seen.missing)} of them are missing at west",
        f"  released         {seen.released} rows, {report.rows_per_second:.0f}/s, each when west had flushed it",
        f"  committed        {report.committed} at east; what was not released, nobody was told about",
        f"  lost with east   {report.evidence[0]}",
        f"  found at west    {seen.survived} rows, {len(seen.different)} different, {len(seen.gaps)} gaps",
        f"  promoted in      {report.promotion_seconds:.2f} s",
        f"  first write      {report.first_write_seconds:.2f} s after the kill",
    ]
    return "\n".join(lines)
