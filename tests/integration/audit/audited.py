"""Two sites with three brokers each, set right; tests set them wrongly and type the repairs that findings print."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from support.command import Said, call
from zerotail.audit.judgement import Audit, Finding, judge
from zerotail.audit.observation import observe_sites
from zerotail.config import load
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import Admin, admin_client
from zerotail.lab.broker import java_command
from zerotail.lab.database import dsn, programs_for
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import connect

PATIENCE_SECONDS = 30.0
TOPIC = "payments"


@dataclass(frozen=True)
class Audited:
    """The sites, and how they are looked at."""

    lab: Layout
    folder: Path

    @property
    def config(self) -> Path:
        """As an operator has it who stands outside both sites."""
        return self.lab.path / "zerotail.yaml"

    def audit(self, *, config: Path | None = None, only: str | None = None) -> Audit:
        """Look at both sites now, or at one."""
        return judge(observe_sites(load(config or self.config), only=only))

    def called(self, *arguments: str, config: Path | None = None) -> Said:
        """The program, as a person calls it."""
        return call("audit", "--config", str(config or self.config), *arguments)

    def wait_until_found(self, rule: str) -> list[Finding]:
        """Return the findings of a rule as soon as there are any: settings reach every broker a moment later."""
        return wait_until(f"{rule} is found", lambda: findings(self.audit(), rule), Deadline.after(PATIENCE_SECONDS))

    def wait_until_clean(self) -> None:
        """Return when nothing is found and everything could be looked at."""
        seen: list[Audit] = []

        def clean() -> bool:
            seen.append(self.audit())
            return seen[-1].answer == "clean"

        try:
            wait_until("all is clean", clean, Deadline.after(PATIENCE_SECONDS))
        except Unavailable as error:
            raise AssertionError(seen[-1]) from error

    # Kafka.

    def admin(self, site: str) -> Admin:
        return admin_client(Cluster(self.lab.bootstrap(site)))

    def set_topic(self, site: str, name: str, value: str | None) -> None:
        """Give the configured topic a setting, or take it away."""
        self._alter(site, ConfigResource(ResourceType.TOPIC, TOPIC), name, value)

    def set_brokers(self, site: str, settings: dict[str, str]) -> None:
        """Give all brokers of a site settings; the client in Python cannot name all of them."""
        words = f"--bootstrap-server {self.lab.bootstrap(site)} --alter --entity-type brokers --entity-default"
        given = ",".join(f"{name}={value}" for name, value in settings.items())
        self.type(f"kafka-configs.sh {words} --add-config {given}")

    def set_first_broker(self, site: str, name: str, value: str | None) -> None:
        """Give one broker a setting, or take it away."""
        self._alter(site, ConfigResource(ResourceType.BROKER, "1"), name, value)

    def _alter(self, site: str, resource: ConfigResource, name: str, value: str | None) -> None:
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        resource.add_incremental_config(ConfigEntry(name, value or "", incremental_operation=operation))
        client = self.admin(site)  # a client that nobody holds is gone before it has an answer
        for future in client.incremental_alter_configs([resource], request_timeout=10).values():
            future.result()

    def make_topic(self, site: str, name: str, replicas: list[list[int]], **settings: str) -> None:
        """A topic with its copies on these brokers."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        topic = NewTopic(name, num_partitions=len(replicas), replica_assignment=replicas, config=config)
        client = self.admin(site)
        client.create_topics([topic], request_timeout=10)[name].result()

    def delete_topics(self, site: str, *names: str) -> None:
        client = self.admin(site)
        for future in client.delete_topics(list(names), request_timeout=10).values():
            future.result()

    # PostgreSQL.

    def sql(self, site: str, *statements: str) -> None:
        with connect(dsn(self.lab.database(site)), Deadline.after(PATIENCE_SECONDS)) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def set_database(self, site: str, name: str, value: str | None) -> None:
        """Give a server a setting, or take it away."""
        order = f"reset {name}" if value is None else f"set {name} = '{value}'"
        self.sql(site, f"alter system {order}", "select pg_reload_conf()")

    # Repairs.

    def type(self, line: str) -> None:
        """Type a line into a shell that finds Kafka's and PostgreSQL's programs."""
        programs = self.folder / "programs"
        if not programs.is_dir():
            programs.mkdir()
            kafka = " ".join(map(shlex.quote, java_command()))
            folder = shlex.quote(str(self.lab.folder_of("east.kafka.1")))
            _script(programs / "kafka-configs.sh", f'cd {folder} && exec {kafka} kafka.admin.ConfigCommand "$@"')
            psql = shlex.quote(str(programs_for(self.lab, "east.postgres").folder / "psql"))
            _script(programs / "psql", f'exec {psql} -v ON_ERROR_STOP=1 "$@"')
        path = f"{programs}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", line], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    def changed_configuration(self, change: Callable[[dict[str, object]], None], name: str = "changed") -> Path:
        """The configuration with something else in it."""
        content = yaml.safe_load(self.config.read_text())
        change(content)
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content))
        return path


def findings(audit: Audit, rule: str) -> list[Finding]:
    """What was found under one rule."""
    return [finding for finding in audit.findings if finding.rule == rule]


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
