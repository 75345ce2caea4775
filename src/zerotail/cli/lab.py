"""`zerotail lab …`: two real sites on this machine, by hand."""

from __future__ import annotations

from pathlib import Path

import click

from zerotail.cli.lab_options import bindir_option, dir_option
from zerotail.cli.output import json_option, print_answer, print_json


@click.group("lab")
def command() -> None:
    """Two real sites, east and west, on this machine: start, break and heal them by hand.

    A target is a site or a part of it: east, east.kafka, east.kafka.2, east.postgres, east.spark, link,
    outside.receiver, outside.kafka, outside.postgres.
    """


@command.command(epilog="Example:  zerotail lab up --brokers 3 --latency 5")
@dir_option
@click.option(
    "--brokers", type=click.IntRange(1, 3), default=1, show_default=True, help="Kafka nodes per site: 1 or 3."
)
@click.option(
    "--latency",
    type=click.FloatRange(0, 10_000),
    default=0.0,
    metavar="MS",
    help="Delay of the link, one way.",
)
@click.option("--receiver", type=click.Choice(["R0", "R1", "R2", "R3"]), default="R2", show_default=True)
@click.option(
    "--example",
    type=click.Choice(["bank", "two-stages"]),
    default="bank",
    show_default=True,
    help="Whose configuration is written into the lab's folder.",
)
@click.option("--partitions", type=click.IntRange(1, 1000), default=2, show_default=True, help="Of each topic in it.")
@click.option("--spark-cluster", is_flag=True, help="Start a Spark master and two workers in east, too.")
@click.option(
    "--stretch",
    is_flag=True,
    help="One Kafka cluster over three sites by rack (a node in east, west and outside) instead of one per site.",
)
@bindir_option
@json_option
def up(
    folder: Path,
    brokers: int,
    latency: float,
    receiver: str,
    example: str,
    partitions: int,
    spark_cluster: bool,
    stretch: bool,
    bindir: str | None,
    as_json: bool,
) -> None:
    """Start two sites, the link between them and the outside; back when all of them serve.

    The lab's folder then holds zerotail.yaml, the example's configuration with these servers' addresses.
    """
    import time

    from zerotail.cli.progress import steps_display
    from zerotail.lab.layout import LabSettings
    from zerotail.lab.up import bring_up

    began = time.monotonic()
    settings = LabSettings(folder, brokers, latency, receiver, bindir, example, partitions, spark_cluster, stretch)
    with steps_display("lab up") as tell:
        layout = bring_up(settings, lambda step: tell(step.part, step.done))
    seconds = time.monotonic() - began
    if as_json:
        from zerotail.cli.answers import LabUpAnswer

        print_json("lab-up", LabUpAnswer(str(folder), round(seconds, 2), layout))
        return
    lines = [f"two sites are up in {folder} ({seconds:.1f} s)"]
    lines += [
        f"  {site}  kafka {layout.bootstrap(site)}   postgres 127.0.0.1:{layout.database(site).port}"
        for site in ("east", "west")
    ]
    lines.append(f"  outside  receiver 127.0.0.1:{layout.receiver_port} ({receiver})")
    if stretch:
        lines.append(f"  one Kafka cluster over all three sites  {layout.wide_bootstrap}")
    if spark_cluster:
        lines.append(f"  spark  {layout.spark_master}")
    lines.append(f"  configuration  {folder / 'zerotail.yaml'} ({'stretch' if stretch else example})")
    print_answer("\n".join(lines))


@command.command(epilog="Example:  zerotail lab down")
@dir_option
@click.option("--keep", is_flag=True, help="Keep the files (logs, data) for a look afterwards.")
@json_option
def down(folder: Path, keep: bool, as_json: bool) -> None:
    """End every process of the lab and remove its folder. A lab that is down already stays so."""
    from zerotail.lab.up import take_down

    ended = take_down(folder, keep_files=keep)
    if as_json:
        from zerotail.cli.answers import LabDownAnswer

        print_json("lab-down", LabDownAnswer(str(folder), ended))
    else:
        print_answer(f"the lab in {folder} is down; {ended} processes ended" if ended else f"nothing ran in {folder}")


@command.command(epilog="Example:  zerotail lab status --json")
@dir_option
@json_option
def status(folder: Path, as_json: bool) -> int:
    """What runs, in which role. Exits with 1 when something that should run does not."""
    from zerotail.lab.fault import describe_way
    from zerotail.lab.layout import require_layout
    from zerotail.lab.status import observe_lab

    observed = observe_lab(require_layout(folder))
    if as_json:
        print_json("lab-status", observed)
        return 0 if observed.well else 1
    lines = [f"lab in {observed.folder}: {'all is running' if observed.well else 'not everything is running'}"]
    lines += [
        f"  {part.part:<19} {part.state:<10} port {part.ports[0]:<6} {part.role}".rstrip() for part in observed.parts
    ]
    ways = observed.link.ways if observed.link else ()
    lines += [f"  link {way.direction:<12} {way.delivered_bytes} bytes, {describe_way(way)}" for way in ways]
    print_answer("\n".join(lines))
    return 0 if observed.well else 1


@command.command(epilog="Example:  zerotail lab promote west")
@click.argument("site", type=click.Choice(["east", "west"]))
@dir_option
@json_option
def promote(site: str, folder: Path, as_json: bool) -> None:
    """Make the site's database the primary."""
    from zerotail.deadline import Deadline
    from zerotail.lab.layout import require_layout
    from zerotail.lab.site import promote_site

    timeline = promote_site(require_layout(folder), site, Deadline.after(30))
    if as_json:
        from zerotail.cli.answers import LabPromoteAnswer

        print_json("lab-promote", LabPromoteAnswer(site, timeline))
    else:
        print_answer(f"{site}'s database is primary, on timeline {timeline}")


@command.command(epilog="Example:  zerotail lab rejoin east")
@click.argument("site", type=click.Choice(["east", "west"]))
@dir_option
@json_option
def rejoin(site: str, folder: Path, as_json: bool) -> None:
    """Bring the site's database back as a synchronous standby of the other one, by a fresh copy."""
    from zerotail.deadline import Deadline
    from zerotail.lab.layout import require_layout
    from zerotail.lab.rejoin import rejoin_site

    rejoin_site(require_layout(folder), site, Deadline.after(60))
    if as_json:
        from zerotail.cli.answers import LabRejoinAnswer

        print_json("lab-rejoin", LabRejoinAnswer(site))
    else:
        print_answer(f"{site}'s database follows again, and commits wait for it")


@command.command("stop-database", epilog="Example:  zerotail lab stop-database east")
@click.argument("site", type=click.Choice(["east", "west"]))
@dir_option
@json_option
def stop_database(site: str, folder: Path, as_json: bool) -> None:
    """Stop the site's database cleanly: its standby then has everything. One that does not run stays so."""
    from zerotail.deadline import Deadline
    from zerotail.lab.layout import require_layout
    from zerotail.lab.site import stop_site_database

    stopped = stop_site_database(require_layout(folder), site, Deadline.after(60))
    if as_json:
        from zerotail.cli.answers import LabStopDatabaseAnswer

        print_json("lab-stop-database", LabStopDatabaseAnswer(site, stopped))
    else:
        print_answer(f"{site}'s database is stopped" if stopped else f"{site}'s database did not run")


def _add_other_commands() -> None:
    from zerotail.cli.lab_faults import FAULTS
    from zerotail.cli.lab_load import load

    for other in (load, *FAULTS):
        command.add_command(other)


_add_other_commands()
