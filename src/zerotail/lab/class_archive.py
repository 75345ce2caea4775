"""A memory image of Kafka's classes, which more than halves what a node's start costs.

Starting a node is mostly loading and checking some thousand classes. Java can keep them ready in an archive file, made
once, at the end of a run of a node. The archive lies beside the jars; Java itself finds out when it no longer fits
(other jars, another Java) and then starts without it.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from pathlib import Path

from zerotail.deadline import Deadline, wait_until
from zerotail.lab.broker import ENVIRONMENT, class_archive, format_broker, java_command, new_cluster_id
from zerotail.lab.layout import LabSettings, plan_layout, ports_needed
from zerotail.lab.part import accepts_connections
from zerotail.lab.ports import release_ports, reserve_ports
from zerotail.lab.process import kill, marked_environment

_PATIENCE_SECONDS = 120.0


def make_class_archive() -> Path | None:
    """Run one node until it serves and let Java write the archive; None when there is one already."""
    archive = class_archive()
    if archive.is_file():
        return None
    # Beside its place, for the last step is a rename, which does not cross file systems.
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".archive-") as scratch:
        settings = LabSettings(Path(scratch))
        layout = plan_layout(settings, reserve_ports(ports_needed(settings), settings.folder))
        place = layout.broker("outside.kafka.1")
        try:
            format_broker(layout, place, new_cluster_id())
            folder = layout.folder_of(place.part)
            written = folder / "kafka.jsa"
            with subprocess.Popen(
                [*java_command(f"-XX:ArchiveClassesAtExit={written}"), "kafka.Kafka", "server.properties"],
                cwd=folder,
                env=marked_environment(layout.path, place.part, ENVIRONMENT),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as node:
                deadline = Deadline.after(_PATIENCE_SECONDS)
                wait_until("the node serves", lambda: accepts_connections(place.port), deadline)
                node.send_signal(signal.SIGTERM)
                node.wait(deadline.seconds_left)
            written.rename(archive)
        finally:
            kill(layout.path, {place.part}, Deadline.after(_PATIENCE_SECONDS))
            release_ports(layout.path)
    return archive
