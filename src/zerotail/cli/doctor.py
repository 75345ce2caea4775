"""`zerotail doctor`."""

from __future__ import annotations

import sys

import click

from zerotail.cli.lab_options import bindir_option
from zerotail.cli.output import json_option, print_answer, print_json, say, tick


@click.command("doctor", epilog="Example:  zerotail doctor --install")
@click.option("--install", is_flag=True, help="Bring what is missing: packages by apt when root, and the jars.")
@bindir_option
@json_option
def command(install: bool, bindir: str | None, as_json: bool) -> int:
    """Is everything here that zerotail needs? Each ✗ comes with the line to type.

    Exits with 0 when all is well, with 1 when something is missing.
    """
    from zerotail.doctor import examine, install_missing

    if install:
        install_missing(say)
    findings = examine(bindir)
    well = all(finding.ok for finding in findings)
    if as_json:
        from zerotail.cli.answers import DoctorAnswer

        print_json("doctor", DoctorAnswer(well, tuple(findings)))
        return 0 if well else 1
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{tick(finding.ok, sys.stdout)} {finding.name:<{width}}  {finding.seen}")
        if not finding.ok:
            lines.append(f"  {'':<{width}}  type:  {finding.to_type}")
    print_answer("\n".join(lines))
    return 0 if well else 1
