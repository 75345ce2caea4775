"""One part of a lab, whatever it is: prepare it, start it, wait until it serves."""

from __future__ import annotations

import socket
import sys
import time

import msgspec

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused, Unavailable, Unfinished
from zerotail.kafka.admin import live_brokers
from zerotail.lab.broker import start_broker
from zerotail.lab.database import dsn, start_database
from zerotail.lab.layout import OUTSIDE, SITES, Layout
from zerotail.lab.link.settings import ForwardSettings, LinkSettings
from zerotail.lab.ports import port_is_free
from zerotail.lab.process import Command, processes_of, start
from zerotail.lab.spark import spark_serves, start_spark
from zerotail.postgres.connection import answers

_LOOKS = 3
_LOOK_SECONDS = 0.05


def kind_of(part: str) -> str:
    """`kafka`, `postgres`, `spark-master`, `spark-worker-1`, …, `link` or `receiver`."""
    return part if part == "link" else part.split(".")[1]


def link_settings(layout: Layout) -> LinkSettings:
    """Everything that may cross: each site's database and brokers, as the other site reaches them."""
    other = {SITES[0]: SITES[1], SITES[1]: SITES[0]}
    doors = [(place.site, place.part, place.link_port, place.port) for place in layout.databases]
    doors += [(place.cluster, place.part, place.link_port, place.across_port) for place in layout.brokers]
    forwards = tuple(
        ForwardSettings(
            name=f"{other[site]}->{part}",
            source=other[site],
            target=site,
            listen_port=listen,
            target_port=target,
        )
        for site, part, listen, target in doors
        if site != OUTSIDE
    )
    return LinkSettings(control_port=layout.link_control_port, forwards=forwards, latency_ms=layout.latency_ms)


def start_part(layout: Layout, part: str) -> None:
    """Start a prepared part; `Refused` when it runs already or somebody else has its port."""
    if any(process.part == part for process in processes_of(layout.path)):
        raise Refused(f"{part} runs already.", code="ZT206", tries=[f"zerotail lab status --dir {layout.folder}"])
    for port in layout.ports_of(part):
        if not port_is_free(port):
            raise Refused(
                f"port {port} of {part} is taken by another program.",
                code="ZT207",
                tries=[f"ss -ltnp 'sport = {port}'    # who has it"],
            )
    match kind_of(part):
        case "kafka":
            start_broker(layout, layout.broker(part))
        case "postgres":
            start_database(layout, layout.database(part.split(".", maxsplit=1)[0]))
        case kind if kind.startswith("spark-"):
            start_spark(layout, part)
        case "link":
            _start_program(layout, part, "zerotail.lab.link", msgspec.json.encode(link_settings(layout)))
        case _:
            settings = {
                "port": layout.receiver_port,
                "control_port": layout.receiver_control_port,
                "folder": str(layout.folder_of(part)),
                "receiver_class": layout.receiver_class,
            }
            _start_program(layout, part, "zerotail.lab.receiver", msgspec.json.encode(settings))


def _start_program(layout: Layout, part: str, module: str, settings: bytes) -> None:
    folder = layout.folder_of(part)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_bytes(settings)
    start(layout.path, Command(part, [sys.executable, "-m", module, "--config", folder / "config.json"], folder))


def wait_until_ready(layout: Layout, part: str, deadline: Deadline) -> None:
    """Return when the part serves; `Unfinished` with the end of its log when it ended instead."""
    try:
        match kind_of(part):
            case "kafka":
                _wait_until_broker_lives(layout, part, deadline)
            case "postgres":
                database = layout.database(part.split(".", maxsplit=1)[0])
                wait_until(f"{part} answers", lambda: answers(dsn(database)) or _ended(layout, part), deadline)
            case kind if kind.startswith("spark-"):
                wait_until(
                    f"{part} is in the cluster",
                    lambda: spark_serves(layout, part) or _ended(layout, part),
                    deadline,
                    every_seconds=0.1,
                )
            case _:
                port = layout.link_control_port if part == "link" else layout.receiver_port
                wait_until(f"{part} listens", lambda: accepts_connections(port) or _ended(layout, part), deadline)
    except Unavailable as error:
        raise Unfinished(
            f"{part} did not become ready: {error.message}; its log ends with: {last_words(layout, part)}",
            code="ZT208",
            tries=[f"less {layout.folder_of(part)}/log"],
        ) from error
    if _ended(layout, part):
        raise Unfinished(f"{part} ended at once; its log ends with: {last_words(layout, part)}", code="ZT208")


def _wait_until_broker_lives(layout: Layout, part: str, deadline: Deadline) -> None:
    place = layout.broker(part)
    bootstrap = f"127.0.0.1:{place.port}"
    wait_until(
        f"Kafka node {place.node} of {place.cluster} is in its cluster",
        lambda: place.node in live_brokers(bootstrap) or _ended(layout, part),
        deadline,
        every_seconds=0.1,
    )


def _ended(layout: Layout, part: str) -> bool:
    """Whether nothing of the part runs. A program that is just replacing itself by another one shows no environment for
    a moment, so a part that is not found is looked for again.
    """
    for _ in range(_LOOKS):
        if any(process.part == part for process in processes_of(layout.path)):
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def accepts_connections(port: int) -> bool:
    """Whether somebody listens on this port of the loopback address."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def last_words(layout: Layout, part: str) -> str:
    """The last line of a part's log."""
    try:
        lines = (layout.folder_of(part) / "log").read_text(errors="replace").strip().splitlines()
    except OSError:
        return "no log"
    return lines[-1] if lines else "nothing"
