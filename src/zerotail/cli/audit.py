"""`zerotail audit`: are brokers, topics, clients and databases set so that nothing is lost?"""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zerotail.cli.output import colour_wanted, json_option, print_answer, print_json, say

if TYPE_CHECKING:
    from zerotail.audit.facts import Observed
    from zerotail.audit.judgement import Audit
    from zerotail.audit.observation import Files

_COLOURS = {"clean": "green", "findings": "red", "unknown": "yellow"}
_file = click.Path(path_type=Path)


@click.command("audit", epilog="Example:  zerotail audit --producer shop/producer.properties --strict")
@click.option("--config", "config", metavar="PATH", help="The configuration; else ZEROTAIL_CONFIG, ./zerotail.yaml.")
@click.option("--site", metavar="S", help="Look at this site only; the sites are then not compared.")
@click.option("--producer", "producers", type=_file, multiple=True, metavar="FILE", help="Properties of a producer.")
@click.option("--consumer", "consumers", type=_file, multiple=True, metavar="FILE", help="Properties of a consumer.")
@click.option(
    "--record-seconds", type=click.FloatRange(0), metavar="N", help="Longest time a consumer takes for a record."
)
@click.option(
    "--recovery-days",
    type=click.FloatRange(0),
    default=3.0,
    show_default=True,
    metavar="N",
    help="How long a reader may be away and must still find everything.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for findings that only weaken, too.")
@click.option("--html", "page", type=_file, metavar="FILE", help="Write the report as an HTML file, too.")
@json_option
def command(
    config: str | None,
    site: str | None,
    producers: tuple[Path, ...],
    consumers: tuple[Path, ...],
    record_seconds: float | None,
    recovery_days: float,
    strict: bool,
    page: Path | None,
    as_json: bool,
) -> int:
    """Settings that lose data, at both sites and in property files: what, why, and the line that repairs it.

    Looking changes nothing. Files alone are looked at when there is no configuration. Exits with 0 when nothing that
    loses data was found and everything could be looked at, with 1 when something was found, with 4 when nothing was
    found but not everything could be looked at.
    """
    from zerotail.audit.judgement import judge
    from zerotail.audit.observation import Files

    files = Files(producers, consumers, record_seconds)
    audit = judge(_observe(config, site, files, recovery_days))
    if page is not None:
        from zerotail.audit.page import write_page

        write_page(page, audit, datetime.now().astimezone())
        say(f"the report is in {page}")
    if as_json:
        print_json("audit", audit)
    else:
        print_answer("\n".join(_lines(audit)))
    return audit.exit_code(strict=strict)


def _observe(config: str | None, site: str | None, files: Files, recovery_days: float) -> Observed:
    """Files first: what is wrong with them is said before anybody is contacted."""
    from zerotail.audit.facts import DAY_SECONDS, Observed
    from zerotail.audit.observation import observe_files, observe_sites
    from zerotail.config import FILE_NAME, FILE_VARIABLE, load

    theirs = observe_files(files)
    named = config or site or os.environ.get(FILE_VARIABLE) or os.path.lexists(FILE_NAME)
    if theirs.subjects and not named:
        return theirs
    configuration = load(config)
    if site is not None:
        configuration.require_site(site)
    ours = observe_sites(configuration, only=site, recovery_seconds=int(recovery_days * DAY_SECONDS))
    return Observed((*ours.subjects, *theirs.subjects), ours.unlooked, ours.answered)


def _lines(audit: Audit) -> list[str]:
    """The lines, with the answer in colour where colour is wanted."""
    from zerotail.audit.shown import audit_lines

    lines = audit_lines(audit)
    if colour_wanted(sys.stdout):
        lines[0] = click.style(lines[0], fg=_COLOURS[audit.answer], bold=True)
    return lines
