"""Two real sites with a running flow, an operator's configuration, and a receiver outside that counts."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import patch

from support.command import PROGRAM, Said, call
from support.flow import PATIENCE_SECONDS, Settle, System, new_system
from zerotail.cli.frame import _run
from zerotail.config import Configuration, load
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, create_topic
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import one_row, session

NAME = "pair"
BANK = f"bank-{NAME}"
TESTS = Path(__file__).parents[1]
_INSERT = """
insert into zerotail.instruction (producer, partition, serial, id, value)
select %s, %s, n, n::text || '/' || %s || '/' || %s,
       convert_to(json_build_object('account', 'account ' || n %% 97, 'amount', n)::text, 'utf8')
from generate_series(%s::bigint, %s::bigint) as n
"""
_LAST = "select coalesce(max(serial), 0) from zerotail.instruction where producer = %s and partition = %s"


def handler() -> Settle:
    """What the configuration names as the stage's handler."""
    return Settle(BANK)


def newer_handler() -> Settle:
    """The same, of a version that made no segment yet."""
    return Settle(BANK, "2")


@dataclass
class Sites:
    """The pair: which processes run where, and what was inserted."""

    lab: Layout
    system: System
    folder: Path
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def config(self, site: str) -> Path:
        """The configuration as it is at a site: the other one is reached through the link."""
        return self.folder / f"{site}.yaml"

    def configuration(self, site: str) -> Configuration:
        return load(self.config(site))

    @property
    def state(self) -> Path:
        """The operators' notes."""
        return self.folder / "state"

    # Processes of a site.

    def start(self, site: str) -> None:
        """Start the site's processes; returns when they run."""
        process = subprocess.Popen(
            [sys.executable, "-m", "support.site_process", "--config", self.config(site), "--site", site],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.environment(site)},
        )
        self.processes[site] = process
        assert process.stdout is not None
        while (line := process.stdout.readline()) != "ready\n":
            assert line, f"the processes of {site} ended with {process.wait()}"

    def kill(self, site: str) -> None:
        """Kill -9 the site's processes."""
        process = self.processes.pop(site)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def wait_until_told(self, site: str, wanted: str) -> None:
        """Read what the site's processes tell until this line comes."""
        stream = self.processes[site].stdout
        assert stream is not None
        too_late = Timer(PATIENCE_SECONDS, self.processes[site].kill)
        too_late.start()
        try:
            while (line := stream.readline()).strip() != wanted:
                assert line, f"{site} ended, or was ended for its silence, without {wanted!r}"
        finally:
            too_late.cancel()

    # What is submitted, and what arrives.

    def insert(self, site: str, count: int, mark: str = "") -> None:
        """So many instructions more of each producer and partition, committed at this site only."""
        with session(self.dsn(site), Deadline.after(PATIENCE_SECONDS)) as primary:
            primary.execute("set synchronous_commit = local")
            for producer in self.system.producers:
                for partition in range(self.system.partitions):
                    (last,) = one_row(primary, _LAST, (producer, partition))
                    primary.execute(_INSERT, (producer, partition, partition, mark, last + 1, last + count))

    def never_restarted(self, site: str) -> None:
        """Let the site's database take rows as if its server had run all the time, cut off from the other one."""
        with session(self.dsn(site), Deadline.after(PATIENCE_SECONDS)) as primary:
            primary.execute("set synchronous_commit = local")
            primary.execute(
                "update zerotail.life set started_at = pg_postmaster_start_time(), verified_at = clock_timestamp()"
                " where number = (select max(number) from zerotail.life)"
            )

    def rows(self, site: str) -> int:
        """Instructions that the site's database has."""
        with session(self.dsn(site), Deadline.after(PATIENCE_SECONDS)) as connection:
            return int(one_row(connection, "select count(*) from zerotail.instruction")[0])

    def wait_until_all_arrived(self, site: str) -> int:
        """Wait until the receiver has one message for each instruction of this site; how many."""
        wanted = self.rows(site)
        wait_until(f"{wanted} arrived", lambda: self.system.accepted() >= wanted, Deadline.after(PATIENCE_SECONDS))
        self.system.require_exactly_once(wanted)
        return wanted

    def dsn(self, site: str) -> str:
        return dsn(self.lab.database(site))

    # The operator.

    def environment(self, site: str) -> dict[str, str]:
        known = os.environ.get("PYTHONPATH", "")
        return {
            "ZEROTAIL_CONFIG": str(self.config(site)),
            "ZEROTAIL_STATE": str(self.state),
            "PYTHONPATH": os.pathsep.join([str(TESTS), *([known] if known else [])]),
        }

    def call(self, *words: str, at: str = "west") -> Said:
        """What an operator at this site types; in this process, since starting one takes longer than most answers."""
        out, err = io.StringIO(), io.StringIO()
        with patch.dict(os.environ, self.environment(at)), redirect_stdout(out), redirect_stderr(err):
            code = _run(list(words))
        return Said(code, out.getvalue(), err.getvalue())

    def call_program(self, *words: str, at: str = "west") -> Said:
        """What an operator at this site types, as a program of its own."""
        return call(*words, environment=self.environment(at))

    def act(self, *words: str, confirm: str, at: str = "west", flags: tuple[str, ...] = ()) -> dict[str, Any]:
        """Plan and run, as a script does."""
        planned = self.call(words[0], "plan", *words[1:], "--json", at=at).answer(f"{words[0]}-plan")
        stated = ("--plan", planned["id"], "--confirm", confirm, *flags)
        ran = self.call(words[0], "run", *words[1:], *stated, "--json", at=at)
        assert ran.code == 0, ran.out + ran.err
        return ran.answer(f"{words[0]}-report")

    def standing(self, site: str) -> tuple[int, str, str]:
        """Epoch, phase and durability, as the site's database has them."""
        query = "select epoch, phase, durability from zerotail.epoch order by epoch desc limit 1"
        with session(self.dsn(site), Deadline.after(PATIENCE_SECONDS)) as connection:
            epoch, phase, durability = one_row(connection, query)
            return int(epoch), str(phase), str(durability)


@contextmanager
def two_sites(lab: Layout, folder: Path, **takeover: list[str]) -> Iterator[Sites]:
    """A flow in this lab, at east; its processes are not started yet."""
    system = new_system(lab, NAME, 1, partitions=2)
    create_topic(admin_client(Cluster(lab.bootstrap("west"))), system.topic, TopicSettings(2, 1))
    sites = Sites(lab, system, folder)
    for site in ("east", "west"):
        sites.config(site).write_text(json.dumps(_content(lab, system, site, takeover)))
    try:
        yield sites
    finally:
        for site in list(sites.processes):
            sites.processes[site].send_signal(signal.SIGCONT)
            sites.kill(site)


@contextmanager
def working_sites(lab: Layout, folder: Path, started: Sequence[str], instructions: int) -> Iterator[Sites]:
    """A flow that is at work in east of a new lab, in which so many instructions have arrived."""
    with two_sites(lab, folder) as sites:
        for site in started:
            sites.start(site)
        sites.insert("east", instructions)
        sites.wait_until_all_arrived("east")
        yield sites


def _content(lab: Layout, system: System, at: str, takeover: dict[str, list[str]]) -> dict[str, Any]:
    lab_command = [*PROGRAM, "lab"]
    receiver = f"http://127.0.0.1:{lab.receiver_port}"
    commands = {
        "stop": [*lab_command, "stop-database", "{site}", "--dir", lab.folder],
        "attach": [*lab_command, "rejoin", "{site}", "--dir", lab.folder],
        **takeover,
    }
    return {
        "name": NAME,
        "prefer": "east",
        "sites": {
            site: {
                "kafka": {"bootstrap": lab.bootstrap(site, seen_from=at)},
                "database": {"dsn": dsn(lab.database(site), seen_from=at)},
            }
            for site in ("east", "west")
        },
        "topics": {system.topic: {"partitions": system.partitions, "replication": 1}},
        "producers": {f"producer{number}": {"topic": system.topic} for number in system.producers},
        "stages": {
            system.stage: {
                "consumes": system.topic,
                "handler": "support.sites:handler",
                "emits": [system.bank],
                "state": "replay",
            }
        },
        "channels": {
            system.bank: {
                "kind": "http",
                "url": f"{receiver}/batches",
                "last_number_url": f"{receiver}/claims",
                "receiver": "R2",
            }
        },
        "takeover": commands,
    }
