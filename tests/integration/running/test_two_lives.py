"""Tables made anew, or from a dump, beside the old Kafka and the old receiver: two lives do not touch each other."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.command import call
from support.journal import new_database, superuser
from support.outside import Judge
from support.running import PATIENCE_SECONDS, Running
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.lab.ports import release_ports, reserve_ports
from zerotail.lab.receiver.protocol import PartitionTotals
from zerotail.machine import find_postgres_programs

pytestmark = pytest.mark.nightly

FORMER, NEW = 150, 40
"""Instructions of each of the two producers: the new life sends fewer, so that whatever is left over shows."""


@dataclass
class Apart(Running):
    """A system with a database of its own in the servers of the lab."""

    own: str = ""
    judge: Judge | None = None
    lives: list[str] = field(default_factory=list)

    @property
    def channel(self) -> str:
        return f"http-{self.receiver}"

    @property
    def database(self) -> str:
        return super().database.replace("dbname=postgres", f"dbname={self.own}")

    def content(self) -> dict[str, Any]:
        content, judge = super().content(), self.judge
        assert judge is not None
        content["channels"][self.channel]["url"] = f"{judge.url}/batches"
        for site in content["sites"].values():
            site["database"]["dsn"] = site["database"]["dsn"].replace("dbname=postgres", f"dbname={self.own}")
        return content

    def begin(self, *how: str) -> str:
        """Begin, with empty tables unless it is said how; the identity of the installation."""
        how = how or ("--first-epoch",)
        said = call("schema", "apply", "--config", str(self.config), "--site", "east", *how, "--json")
        self.inserted.clear()
        self.lives.append(said.answer("schema-apply")["installation"])
        return self.lives[-1]

    def totals(self) -> list[PartitionTotals]:
        assert self.judge is not None
        found = self.judge.control.totals(deadline=Deadline.after(PATIENCE_SECONDS)).partitions
        return [one for one in found if one.channel == self.channel and one.installation in self.lives]

    def accepted_of(self, installation: str) -> int:
        """What the receiver has taken of an installation."""
        return sum(one.accepted for one in self.totals() if one.installation == installation)

    def run(self, count: int, installation: str) -> subprocess.Popen[bytes]:
        """Run all until the outside has so many messages of each producer."""
        process = self.start("all")
        self.wait("producers are registered", lambda: len(self.sql("select from zerotail.producer")) == 2)
        self.insert(count)
        self.wait("all have arrived", lambda: self.accepted_of(installation) >= self.expected)
        return process


@pytest.fixture
def judge_of_its_own(tmp_path: Path) -> Iterator[Judge]:
    """A receiver of class R1 that nobody else uses: every test of the session counts in its own partitions."""
    port, control_port = reserve_ports(2, tmp_path)
    judge = Judge(port, control_port, tmp_path / "judge")
    judge.start()
    yield judge
    judge.kill()
    release_ports(tmp_path)


@contextmanager
def apart(lab: Layout, folder: Path, name: str, judge: Judge) -> Iterator[Apart]:
    """A system with a receiver of class R1, whose processes are gone behind the block."""
    system = Apart(lab, folder, name, receiver="R1", own=new_database(lab)[0], judge=judge)
    system.write()
    try:
        yield system
    finally:
        system.end()


def test_nothing_of_a_former_life_is_applied_and_nothing_new_is_taken_for_a_repeat(
    warm_lab: Layout, judge_of_its_own: Judge, tmp_path: Path
) -> None:
    with apart(warm_lab, tmp_path, "lives", judge_of_its_own) as system:
        former = system.begin()
        system.run(FORMER, former)
        system.end()
        with superuser(system.database) as connection:
            connection.execute("drop schema zerotail cascade")
        new = system.begin()
        assert new != former
        system.run(NEW, new)
        system.wait("they are counted", lambda: system.counted("stage", "other_installation") >= 2 * FORMER)
        (taken,) = system.sql("select sum(value::bigint)::bigint from zerotail.head, jsonb_each_text(vector)")
        assert taken == (2 * NEW,)
        assert (system.accepted_of(former), system.accepted_of(new)) == (2 * FORMER, 2 * NEW)
        assert all((one.repeats_dropped, one.different_bytes) == (0, 0) for one in system.totals())
        assert any("of another installation" in trouble for trouble in system.status()["troubles"])


def test_tables_from_a_dump_end_every_process_and_begin_a_life_of_their_own(
    warm_lab: Layout, judge_of_its_own: Judge, tmp_path: Path
) -> None:
    programs, dump = find_postgres_programs(warm_lab.bindir), tmp_path / "dump.sql"
    with apart(warm_lab, tmp_path, "dumped", judge_of_its_own) as system:
        former = system.begin()
        process = system.run(NEW, former)
        subprocess.run([f"{programs}/pg_dump", "-n", "zerotail", "-f", str(dump), "-d", system.database], check=True)
        system.insert(FORMER)
        system.wait("all have arrived", lambda: system.accepted_of(former) >= system.expected)
        with superuser(system.database) as connection:
            connection.execute("drop schema zerotail cascade")
        loaded = [f"{programs}/psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(dump), "-d", system.database]
        subprocess.run(loaded, check=True, stdout=subprocess.DEVNULL)
        system.wait("the processes end", lambda: process.poll() is not None)
        assert process.returncode == 3
        assert "loaded from a dump" in system.log.read_text()
        status = system.status()
        assert status["answer"] != "ready"
        assert any("zerotail schema apply --restored --site east" in reason for reason in status["reasons"])
        new = system.begin("--restored", "--confirm", "east")
        system.inserted = {(producer, 0): NEW for producer in system.producers}
        system.start("all")
        system.insert(NEW)
        system.wait("all that is new has arrived", lambda: system.accepted_of(new) >= 2 * NEW)
        (taken,) = system.sql("select sum(value::bigint)::bigint from zerotail.head, jsonb_each_text(vector)")
        assert taken == (2 * 2 * NEW,), "each of the former ones that the dump has, and each new one"
        assert system.accepted_of(former) == 2 * (NEW + FORMER)
        assert all((one.repeats_dropped, one.different_bytes) == (0, 0) for one in system.totals())
