"""`zerotail spool`: what waits in the local queue of a service, and draining one that its service has left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zerotail.cli.output import json_option, print_answer, print_json

if TYPE_CHECKING:
    from zerotail.spool.finish import DrainReport
    from zerotail.spool.status import SpoolStatus


@click.group("spool", epilog="Example:  zerotail spool status queue")
def command() -> None:
    """The durable local queue of a service: look into it, or drain what was left in it."""


_named = click.option("--producer", metavar="NAME", help="Instead of FOLDER: its queue by the configuration.")
_config = click.option("--config", metavar="PATH", help="The configuration; else ZEROTAIL_CONFIG, ./zerotail.yaml.")


@command.command("status", epilog="Example:  zerotail spool status queue --json")
@click.argument("folder", required=False)
@_named
@_config
@json_option
def status(folder: str | None, producer: str | None, config: str | None, as_json: bool) -> int:
    """What waits in a queue, since when, and who uses it. Works beside the service, and changes nothing.

    Exits with 1 when somebody has to look: entries were set aside, or a file is damaged.
    """
    from zerotail.cli.answers import SpoolStatusAnswer
    from zerotail.spool.status import observe_spool

    seen = observe_spool(_folder(folder, producer, config))
    if as_json:
        print_json("spool-status", SpoolStatusAnswer(seen.ok, seen))
    else:
        print_answer("\n".join(_status_lines(seen)))
    return 0 if seen.ok else 1


@command.command("drain", epilog="Example:  zerotail spool drain queue --config zerotail.yaml")
@click.argument("folder", required=False)
@_named
@_config
@click.option(
    "--patience",
    "patience_seconds",
    type=click.FloatRange(0.1, 86_400),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up when nothing was drained for so long.",
)
@json_option
def drain(folder: str | None, producer: str | None, config: str | None, patience_seconds: float, as_json: bool) -> None:
    """Bring every entry of a queue to the active site; return when all are behind the gate.

    For a queue whose service does not run any more: while it does, it drains by itself and has the folder locked.
    Interrupted anywhere it can be run again; nothing is taken twice.
    """
    from zerotail.cli.progress import count_display
    from zerotail.config import load
    from zerotail.spool.finish import drain_to_end
    from zerotail.spool.sites import Sites
    from zerotail.spool.spool import Spool

    configuration = load(config)
    with Spool(_folder(folder, producer, config)) as spool, count_display("spool drain", spool.waiting) as tell:
        sites = Sites.of(configuration)
        try:
            report = drain_to_end(spool, sites, patience_seconds, tell)
        finally:
            sites.close()
    if as_json:
        print_json("spool-drain", report)
    else:
        print_answer(_report_line(report))


def _folder(folder: str | None, producer: str | None, config: str | None) -> str:
    """The queue that is meant: named itself, or by the producer whose instructions it holds."""
    from zerotail.config import load
    from zerotail.errors import Misused
    from zerotail.spool.folder import require_producer_named

    if (folder is None) == (producer is None):
        raise Misused("give the folder of a queue, or --producer NAME.", tries=["zerotail spool status queue"])
    if folder is not None:
        return folder
    producers = load(config).producers
    queues = {str(name): one.spool for name, one in producers.items() if one.spool is not None}
    if producer not in queues:
        raise Misused(
            f"the configuration has no producer {producer!r} with source: spool.",
            code="ZT115",
            tries=[f"one of: {', '.join(queues)}"] if queues else ["zerotail spool status FOLDER"],
        )
    require_producer_named(queues[producer], producer)
    return str(queues[producer])


def _status_lines(seen: SpoolStatus) -> list[str]:
    user = f"used by process {seen.used_by}" if seen.used_by is not None else "no process uses it"
    lines = [f"{seen.folder} · producer {seen.producer} · {user}"]
    if seen.waiting:
        age = "" if seen.oldest_seconds is None else f", the oldest for {seen.oldest_seconds:.1f} s"
        lines.append(f"  {seen.waiting} entries wait ({seen.waiting_bytes} bytes{age})")
    else:
        lines.append("  nothing waits")
    lines.append(f"  drained up to {seen.drained}; {seen.used_bytes} bytes in {seen.segments} files")
    if seen.torn_bytes:
        lines.append(f"  {seen.torn_bytes} bytes at the end are no whole group: being written, or never acknowledged")
    lines += [f"  DAMAGED: {name}: entries that were safe cannot be read" for name in seen.damaged]
    lines += [
        f"  SET ASIDE: entry {one.sequence}: {one.id} (partition {one.partition}) cannot become an instruction"
        for one in seen.set_aside
    ]
    return lines


def _report_line(report: DrainReport) -> str:
    line = f"{report.entries} entries of {report.folder} are behind the gate after {report.seconds:.1f} s"
    if report.known:
        line += f"; {report.known} of them were there already"
    if report.set_aside:
        line += f"; {report.set_aside} set aside, see `zerotail spool status {report.folder}`"
    return f"{line}."
