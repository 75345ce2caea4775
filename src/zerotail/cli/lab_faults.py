"""The faults of `zerotail lab`: each a command that answers with evidence and exits with 1 when it did not bite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zerotail.cli.lab_options import dir_option
from zerotail.cli.output import json_option, print_answer, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from zerotail.deadline import Deadline
    from zerotail.lab.fault import FaultReport
    from zerotail.lab.layout import Layout
    from zerotail.lab.link import Done, LinkControl


def _show(report: FaultReport, *, as_json: bool) -> int:
    """0 when the fault bit, 1 when it did not."""
    if as_json:
        print_json("lab-fault", report)
    else:
        head = f"{report.fault} {report.target}: {'done' if report.bit else 'it did not bite'}"
        print_answer("\n".join([head, *(f"  {line}" for line in report.evidence)]))
    return 0 if report.bit else 1


def _faults() -> Any:
    from zerotail.lab import fault

    return fault


def _layout(folder: Path) -> Layout:
    from zerotail.lab.layout import require_layout

    return require_layout(folder)


def _on_target(name: str, example: str, text: str, act: str) -> click.Command:
    """A fault that takes a target; `act` is the function of `lab.fault` that does it."""

    @click.command(name, help=text, epilog=f"Example:  zerotail lab {name} {example}")
    @click.argument("target")
    @dir_option
    @json_option
    def fault(target: str, folder: Path, as_json: bool) -> int:
        return _show(getattr(_faults(), act)(_layout(folder), target), as_json=as_json)

    return fault


direction_option = click.option(
    "--direction",
    type=click.Choice(["both", "east->west", "west->east"]),
    default="both",
    show_default=True,
    help="Which way the bytes flow that are meant.",
)
link_argument = click.argument("target", default="link", type=click.Choice(["link"]))


@click.command(epilog="Example:  zerotail lab cut --direction 'east->west'")
@link_argument
@direction_option
@click.option("--mode", type=click.Choice(["hang", "reset"]), default="hang", show_default=True)
@dir_option
@json_option
def cut(target: str, direction: str, mode: str, folder: Path, as_json: bool) -> int:  # noqa: ARG001
    """Cut the link: connections hang, or are reset."""
    from zerotail.lab.link import CutMode

    return _show(_faults().cut_link(_layout(folder), direction, CutMode(mode)), as_json=as_json)


@click.command(epilog="Example:  zerotail lab heal")
@link_argument
@direction_option
@dir_option
@json_option
def heal(target: str, direction: str, folder: Path, as_json: bool) -> int:  # noqa: ARG001
    """End a cut of the link."""
    return _show(_faults().heal_link(_layout(folder), direction), as_json=as_json)


def _trouble(folder: Path, name: str, act: Callable[[LinkControl, Deadline], Done], *, as_json: bool) -> int:
    return _show(_faults().trouble_link(_layout(folder), name, act), as_json=as_json)


@click.command(epilog="Example:  zerotail lab delay 20")
@click.argument("ms", type=click.FloatRange(0, 60_000))
@direction_option
@dir_option
@json_option
def delay(ms: float, direction: str, folder: Path, as_json: bool) -> int:
    """Let every byte on the link arrive MS milliseconds later; 0 ends it."""
    return _trouble(folder, "delay", lambda link, by: link.delay(ms, direction, deadline=by), as_json=as_json)


@click.command(epilog="Example:  zerotail lab throttle 100000     (and: zerotail lab throttle 0)")
@click.argument("bytes_per_second", type=click.IntRange(0))
@direction_option
@dir_option
@json_option
def throttle(bytes_per_second: int, direction: str, folder: Path, as_json: bool) -> int:
    """Let so many bytes a second pass the link; 0 ends it."""
    limit = bytes_per_second or None
    return _trouble(folder, "throttle", lambda link, by: link.throttle(limit, direction, deadline=by), as_json=as_json)


@click.command(epilog="Example:  zerotail lab hold")
@direction_option
@dir_option
@json_option
def hold(direction: str, folder: Path, as_json: bool) -> int:
    """Let the link take bytes in and deliver none, until `release`."""
    return _trouble(folder, "hold", lambda link, by: link.hold(direction, deadline=by), as_json=as_json)


@click.command(epilog="Example:  zerotail lab release")
@direction_option
@dir_option
@json_option
def release(direction: str, folder: Path, as_json: bool) -> int:
    """Let the link deliver what it held, in order."""
    return _trouble(folder, "release", lambda link, by: link.release(direction, deadline=by), as_json=as_json)


FAULTS = (
    _on_target("kill", "east.kafka", "Kill -9 every process of TARGET at once.", "kill_target"),
    _on_target("fence", "east", "Kill -9 whatever of TARGET still runs; content when nothing did.", "fence_target"),
    _on_target("stop", "west.postgres", "SIGSTOP every process of TARGET.", "stop_target"),
    _on_target("continue", "west", "SIGCONT every process of TARGET.", "continue_target"),
    _on_target("start", "east.kafka", "Start what of TARGET does not run.", "start_target"),
    _on_target("destroy", "east", "Kill -9 everything of a site at once and remove its data.", "destroy_site"),
    cut,
    heal,
    delay,
    throttle,
    hold,
    release,
)
