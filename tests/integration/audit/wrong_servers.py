"""A broker and a database that were set up wrongly from the beginning, in the places of the outside's."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.audit.audited import Audited
from zerotail.deadline import Deadline
from zerotail.lab.broker import ENVIRONMENT, LOGGING, java_command, new_cluster_id, server_properties
from zerotail.lab.database import create_database, dsn, programs_for
from zerotail.lab.layout import Layout
from zerotail.lab.part import start_part, wait_until_ready
from zerotail.lab.process import marked_environment

WRONG_RULES = {
    "cluster-brokers",
    "cluster-racks",
    "cluster-eligible-leaders",
    "broker-auto-create",
    "broker-default-replication",
    "broker-internal-topics",
    "broker-offsets-retention",
    "topic-planned",
    "postgres-checksums",
    "postgres-sync-retry",
    "sites-databases-pair",
}
_KAFKA = "outside.kafka.1"
_POSTGRES = "outside.postgres"
_WRONG = {"auto.create.topics.enable": "true", "offsets.retention.minutes": "1440"}


@dataclass(frozen=True)
class WrongServers:
    """Configurations in which west is the wrong servers, or servers that are not there."""

    config: Path
    silent_config: Path


def start_wrong_servers(audited: Audited) -> WrongServers:
    """Start them beside the lab, which takes them down with everything else."""
    lab, deadline = audited.lab, Deadline.after(60)
    _prepare_broker(lab)
    start_part(lab, _KAFKA)
    _prepare_database(lab, deadline)
    start_part(lab, _POSTGRES)
    wait_until_ready(lab, _POSTGRES, deadline)
    wait_until_ready(lab, _KAFKA, deadline)

    def wrong(content: dict[str, Any]) -> None:
        west = content["sites"]["west"]
        west["kafka"]["bootstrap"] = lab.bootstrap("outside")
        west["database"]["dsn"] = dsn(lab.database("outside"))
        content["topics"]["payments"] |= {"replication": 1, "min_insync": 1, "retention": "1h"}

    def silent(content: dict[str, Any]) -> None:
        west = content["sites"]["west"]
        port = lab.spark[0].port  # promised to this lab, and nobody listens there
        west["kafka"]["bootstrap"] = f"127.0.0.1:{port}"
        west["database"]["dsn"] = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"

    return WrongServers(audited.changed_configuration(wrong, "wrong"), audited.changed_configuration(silent, "silent"))


def _prepare_broker(lab: Layout) -> None:
    place = lab.broker(_KAFKA)
    folder = lab.folder_of(_KAFKA)
    folder.mkdir(parents=True)
    lines = [
        line for line in server_properties(lab, place).splitlines() if not line.startswith(("broker.rack", *_WRONG))
    ]
    lines += [f"{name}={value}" for name, value in _WRONG.items()]
    (folder / "server.properties").write_text("\n".join(lines) + "\n")
    (folder / "log4j2.properties").write_text(LOGGING)
    words = ["kafka.tools.StorageTool", "format", "-t", new_cluster_id(), "-c", "server.properties"]
    words += ["--feature", "eligible.leader.replicas.version=0"]
    environment = marked_environment(lab.path, _KAFKA, ENVIRONMENT)
    subprocess.run([*java_command(), *words], cwd=folder, env=environment, capture_output=True, check=True)


def _prepare_database(lab: Layout, deadline: Deadline) -> None:
    create_database(lab, lab.database("outside"), deadline)
    data = lab.folder_of(_POSTGRES) / "data"
    programs_for(lab, _POSTGRES).run("pg_checksums", "--disable", "--no-sync", "-D", data, deadline=deadline)
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write("data_sync_retry = on\n")
