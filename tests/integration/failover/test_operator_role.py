"""Whoever has the role `zerotail_operator`, and is no superuser, can carry out every act that changes roles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest

from support.arena import Arena
from support.flow import PATIENCE_SECONDS
from support.sites import Sites, working_sites
from zerotail.core.identity import PartitionNumber
from zerotail.deadline import Deadline
from zerotail.lab.fault import kill_target, start_target
from zerotail.postgres.connection import connect, one_row, session
from zerotail.postgres.feed import number_submissions

pytestmark = [pytest.mark.servers, pytest.mark.chapters]

NUMBERED_ELSEWHERE = [f"numbered at west {number}" for number in range(7)]
SUBMISSION = """
insert into zerotail.submission (producer, partition, id, value) values (%s, 0, %s, '{"account": "a", "amount": 1}')
"""
LAST = "select coalesce(max(serial), 0) from zerotail.instruction where producer = %s and partition = 0"
INSERT = """
insert into zerotail.instruction (producer, partition, serial, id, value)
values (%s, 0, %s, %s, '{"account": "a", "amount": 1}')
"""


@pytest.fixture(scope="module")
def sites(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """A pair with some history, whose operator logs in as one; its processes have begun with rights of their own."""
    folder: Path = tmp_path_factory.mktemp("sites")
    with working_sites(arena.renewed(), folder, ("east", "west"), 20) as pair:
        pair.kill("east")
        with session(pair.dsn("east"), Deadline.after(PATIENCE_SECONDS)) as primary:
            primary.execute("create role ada login in role zerotail_operator")
        for site in ("east", "west"):
            config = pair.config(site)
            config.write_text(config.read_text().replace("user=postgres", "user=ada"))
        yield pair


def waits_for(sites: Sites, site: str) -> str:
    """Whom commits of this site wait for."""
    with session(sites.dsn(site), Deadline.after(PATIENCE_SECONDS)) as connection:
        return str(one_row(connection, "show synchronous_standby_names")[0])


def submit_by_sql(sites: Sites, names: Sequence[str]) -> None:
    """Rows without a serial at east, which wait there; west has them when their commit returns, unless it is lost."""
    with connect(sites.dsn("east"), Deadline.after(PATIENCE_SECONDS)) as primary:
        for name in names:
            primary.execute(SUBMISSION, (sites.system.producers[0], name))


def test_an_operator_takes_over(sites: Sites) -> None:
    submit_by_sql(sites, NUMBERED_ELSEWHERE)
    assert kill_target(sites.lab, "east.postgres").bit
    report = sites.act("takeover", "--to", "west", confirm="west")
    assert report["site"] == "west"
    assert sites.standing("west") == (513, "live", "exposed")
    assert waits_for(sites, "west") == ""


def test_an_operator_keeps_the_tail_and_lets_commits_wait_again(sites: Sites) -> None:
    assert start_target(sites.lab, "east.postgres").bit
    sites.never_restarted("east")
    sites.insert("east", 3, "tail")
    producer, first = sites.system.producers[0], PartitionNumber(0)
    with connect(sites.dsn("east"), Deadline.after(PATIENCE_SECONDS)) as primary:
        primary.execute("set synchronous_commit = local")
        primary.execute(SUBMISSION, (producer, "at east only"))
        (again,) = one_row(
            primary,
            "select id from zerotail.instruction where id like %s and producer = %s limit 1",
            ("%/0/tail", producer),
        )
        (value,) = one_row(
            primary, "select value from zerotail.instruction where id = %s and producer = %s", (again, producer)
        )
    with connect(sites.dsn("west"), Deadline.after(PATIENCE_SECONDS)) as primary:
        with primary.transaction():
            assert number_submissions(primary, producer, first, 100) == len(NUMBERED_ELSEWHERE)
        (last,) = one_row(primary, LAST, (producer,))
        primary.execute(
            "insert into zerotail.instruction (producer, partition, serial, id, value) values (%s, 0, %s, %s, %s)",
            (producer, last + 1, again, value),
        )
    report = sites.act("rejoin", "--site", "east", confirm="east")
    kept = report["tail"]
    assert kept["instructions"] == 3 * len(sites.system.producers) * sites.system.partitions - 1
    assert (kept["submissions"], kept["again"]) == (1, 1), "what is applied at west is not said to be lost"
    lines = [json.loads(line) for line in Path(kept["file"]).read_text().splitlines()]
    assert [line["id"] for line in lines if line["kind"] == "submission"] == ["at east only"]
    assert [line["id"] for line in lines if line.get("again")] == [again]
    assert sites.standing("west") == (513, "live", "gated")
    assert waits_for(sites, "west") == "FIRST 1 (east)"


class Business(Thread):
    """Inserts by plain SQL, a row at a time, as fast as it can, and remembers what was committed and what was said."""

    def __init__(self, sites: Sites, site: str) -> None:
        super().__init__(daemon=True)
        self.dsn, self.producer = sites.dsn(site), sites.system.producers[0]
        self.committed: list[int] = []
        self.refused: list[str] = []
        self.began = Event()

    def run(self) -> None:
        with suppress(psycopg.OperationalError), connect(self.dsn, Deadline.after(PATIENCE_SECONDS)) as primary:
            (serial,) = one_row(primary, LAST, (self.producer,))
            while True:
                try:
                    primary.execute(INSERT, (self.producer, serial + 1, f"by SQL {serial + 1}"))
                except psycopg.errors.ReadOnlySqlTransaction as error:
                    self.refused.append(str(error))
                else:
                    serial += 1
                    self.committed.append(serial)
                self.began.set()


def test_an_operator_hands_over_while_a_business_inserts_by_sql(sites: Sites) -> None:
    business = Business(sites, "west")
    business.start()
    assert business.began.wait(PATIENCE_SECONDS)
    report = sites.act("handover", "--to", "east", confirm="east", at="east")
    business.join(PATIENCE_SECONDS)
    assert sites.standing("east")[1:] == ("live", "gated")
    assert waits_for(sites, "east") == "FIRST 1 (west)"
    assert report["remarks"] == [], "the end of the log was looked at behind the stop"
    assert "hands its role over and takes nothing new until that is done" in business.refused[0]
    with session(sites.dsn("east"), Deadline.after(PATIENCE_SECONDS)) as primary:
        (last,) = one_row(primary, LAST, (business.producer,))
        assert last in (business.committed[-1], business.committed[-1] + 1), "one answer at most was not heard"
        assert one_row(primary, "select count(*) from zerotail.doubt") == (0,)


def test_an_operator_goes_on_without_the_other_site(sites: Sites) -> None:
    assert kill_target(sites.lab, "west.postgres").bit
    lost = ("--accept-lost-site", "west")
    sites.act("takeover", "--to", "east", *lost, confirm="east", at="east")
    assert sites.standing("east")[1:] == ("live", "exposed")
    assert waits_for(sites, "east") == ""
