"""One Kafka node of a lab: its settings, formatting and start.

Every node is broker and controller at once. It listens three times: for its own site, for the other controllers, and
for what comes across from the other site; the addresses that it gives to clients of the last kind are the link's, so
that nothing of Kafka's passes from site to site beside the link.
"""

from __future__ import annotations

import base64
import subprocess
import uuid
from functools import cache
from pathlib import Path

from zerotail.errors import Refused, Unfinished
from zerotail.jars import jars_folder, require_jars
from zerotail.lab.layout import BrokerPlace, Layout
from zerotail.lab.process import Command, marked_environment, start
from zerotail.machine import find_java, find_java_version, java_sought_in

# A lab has up to seven nodes on one machine, small and short-lived: the quick compiler alone makes them serve sooner.
_JAVA_OPTIONS = (
    *("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"),
    "-Djava.io.tmpdir=.",  # what a killed broker unpacked goes with its folder
)

ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
"""Java reads file names by the locale; a folder's name may hold more than ASCII."""

_JAVA = 17
LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
"""


def new_cluster_id() -> str:
    """An id of the form Kafka wants: 16 random bytes in base64, and no dash in front, or it looks like an option."""
    while True:
        chosen = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not chosen.startswith("-"):
            return chosen


def server_properties(layout: Layout, place: BrokerPlace) -> str:
    """The node's settings."""
    cluster = layout.cluster(place.cluster)
    copies = min(3, len(cluster))
    in_sync = max(1, copies - 1)
    across = place.link_port or place.across_port
    voters = ",".join(f"{node.node}@127.0.0.1:{node.controller_port}" for node in cluster)
    settings = {
        "process.roles": "broker,controller",
        "node.id": place.node,
        # Copies are spread over racks: in a stretched cluster these are the sites, so two copies are at two sites.
        "broker.rack": place.cluster if layout.stretch else f"{place.cluster}-{place.node}",
        "listeners": f"LOCAL://127.0.0.1:{place.port},ACROSS://127.0.0.1:{place.across_port},"
        f"CONTROLLER://127.0.0.1:{place.controller_port}",
        "advertised.listeners": f"LOCAL://127.0.0.1:{place.port},ACROSS://127.0.0.1:{across}",
        "listener.security.protocol.map": "LOCAL:PLAINTEXT,ACROSS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "LOCAL",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": voters,
        # Seen from the node's folder, where it runs: a whole path might hold a comma, or letters beyond Latin-1.
        "log.dirs": "data",
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": 3,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": 0,
        # A killed node that comes back must wait until the controller has missed it; by default that takes 9 s.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        "auto.create.topics.enable": "false",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def require_java() -> str:
    """The `java` to run; `Refused` with the line to type when there is none, or one that is too old."""
    java = find_java()
    if java is None:
        raise Refused(
            f"Kafka needs Java 17, and there is no java in {java_sought_in()}.",
            code="ZT104",
            tries=["apt-get install openjdk-17-jre-headless", "zerotail doctor --install"],
        )
    version = find_java_version(java)
    if version is not None and version < _JAVA:
        raise Refused(
            f"Kafka needs Java {_JAVA}, and {java} is {version}.",
            code="ZT104",
            tries=["apt-get install openjdk-17-jre-headless", "export JAVA_HOME=…    # of a newer one"],
        )
    return java


def format_broker(layout: Layout, place: BrokerPlace, cluster_id: str) -> None:
    """Prepare the folder of a lab's node, which remembers the id of its cluster."""
    folder = layout.folder_of(place.part)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster-id").write_text(cluster_id)
    format_node(layout.path, place.part, folder, server_properties(layout, place), cluster_id)


def format_node(lab: Path, part: str, folder: Path, properties: str, cluster_id: str) -> None:
    """Write a node's settings and let Kafka's own tool prepare its data folder."""
    (folder / "server.properties").write_text(properties)
    (folder / "log4j2.properties").write_text(LOGGING)
    done = subprocess.run(
        [*java_command(), "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", "server.properties"],
        cwd=folder,
        env=marked_environment(lab, part, ENVIRONMENT),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise Unfinished(f"{part} could not be formatted: {said[-1] if said else 'no reason given'}")


def find_cluster_id(layout: Layout, cluster: str) -> str | None:
    """The id by which those nodes know their cluster that have data."""
    folders = [layout.folder_of(place.part) for place in layout.cluster(cluster)]
    return next((read for folder in folders if (folder / "data").is_dir() and (read := _read_cluster_id(folder))), None)


def _read_cluster_id(folder: Path) -> str | None:
    file = folder / "cluster-id"
    return file.read_text() if file.is_file() else None


def start_broker(layout: Layout, place: BrokerPlace) -> int:
    """Start the node; answers its pid."""
    folder = layout.folder_of(place.part)
    arguments = [*java_command(), "kafka.Kafka", "server.properties"]
    return start(layout.path, Command(place.part, arguments, folder), ENVIRONMENT)


def class_archive() -> Path:
    """Where the image of Kafka's classes is, or would be (see `lab.class_archive`)."""
    return jars_folder("kafka").with_name("kafka.jsa")


def java_command(*options: str) -> list[str]:
    """The words that run one of Kafka's classes, from a node's folder."""
    archive = class_archive()
    ready = (f"-XX:SharedArchiveFile={archive}",) if archive.is_file() else ()
    return [
        require_java(),
        *_JAVA_OPTIONS,
        *ready,
        *options,
        "-Dlog4j2.configurationFile=log4j2.properties",
        *("-cp", _classpath()),
    ]


@cache
def _classpath() -> str:
    """Kafka's jars, compared with the lock file once per process."""
    return f"{require_jars('kafka')}/*"
