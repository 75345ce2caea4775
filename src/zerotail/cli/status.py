"""`zerotail status`: both sites on one screen; works with one of them dead."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from zerotail.cli.output import colour_wanted, console, json_option, print_answer, print_json
from zerotail.cli.progress import redraws
from zerotail.deadline import Deadline

if TYPE_CHECKING:
    from zerotail.config import Configuration
    from zerotail.status import Status

_EVERY_SECONDS = 1.0
_COLOURS = {"ready": "green", "not ready": "red", "unknown": "yellow"}


@click.command("status", epilog="Example:  zerotail status --watch")
@click.option("--config", "config", metavar="PATH", help="The configuration; else ZEROTAIL_CONFIG, ./zerotail.yaml.")
@click.option("--site", metavar="S", help="Ask this site only; the other one is then unknown.")
@click.option("--watch", is_flag=True, help="Look again every second, until Ctrl-C.")
@json_option
def command(config: str | None, site: str | None, watch: bool, as_json: bool) -> int:
    """Both sites on one screen: would a takeover lose nothing right now, and if not, why?

    Looking changes nothing and takes two seconds at most, whoever is dead. Exits with 0 when the answer is yes, with 1
    when it is no or unknown, with 4 when neither site's database answered.
    """
    from zerotail.cli.configured import load_with_code

    configuration = load_with_code(config)
    if site is not None:
        configuration.require_site(site)
    if watch:
        return _watch(configuration, site, as_json=as_json)
    from zerotail.status import observe_status

    status = observe_status(configuration, only=site)
    if as_json:
        print_json("status", status)
    else:
        print_answer("\n".join(_lines(status)))
    return _exit_code(status)


def _exit_code(status: Status) -> int:
    if not status.answered:
        return 4
    return 0 if status.answer == "ready" else 1


def _lines(status: Status) -> list[str]:
    """The lines, with the answer in colour where colour is wanted."""
    from zerotail.cli.status_shown import status_lines

    lines = status_lines(status)
    if colour_wanted(sys.stdout):
        lines[0] = click.style(lines[0], fg=_COLOURS[status.answer], bold=True)
        lines = [click.style(line, fg="yellow") if line.startswith(" !") or "?  " in line else line for line in lines]
    return lines


def _watch(configuration: Configuration, site: str | None, *, as_json: bool) -> int:
    """Look until Ctrl-C, which is how a watch ends."""
    show = _show_json if as_json else _redraw if redraws(sys.stdout) else _print_changes
    try:
        show(_looks(configuration, site))
    except KeyboardInterrupt:
        return 0
    return 0


def _looks(configuration: Configuration, site: str | None) -> Iterator[Status]:
    """One look a second; each knows the one before."""
    from zerotail.status import observe_status

    status = None
    while True:
        next_at = Deadline.after(_EVERY_SECONDS)
        status = observe_status(configuration, only=site, before=status)
        yield status
        time.sleep(next_at.seconds_left)


def _redraw(looks: Iterable[Status]) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(console=console(sys.stdout), auto_refresh=False, screen=False) as live:
        for status in looks:
            live.update(Text.from_ansi("\n".join(_lines(status))), refresh=True)


def _print_changes(looks: Iterable[Status]) -> None:
    """A block whenever something changed that is more than a figure."""
    shown = ""
    for status in looks:
        block = "\n".join(_lines(status))
        if (news := re.sub(r"[\d.:\s]+", " ", block)) != shown:
            shown = news
            print_answer(f"{status.observed_at:%H:%M:%S}  {block}\n")


def _show_json(looks: Iterable[Status]) -> None:
    for status in looks:
        print_json("status", status)
