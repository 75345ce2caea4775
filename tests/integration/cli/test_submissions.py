"""`zerotail submissions set-aside` on real servers: rows that could not be numbered are looked at and decided on."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from support.command import Said
from support.running import Running
from zerotail import submit
from zerotail.cli.frame import _run
from zerotail.config import load
from zerotail.core.identity import PartitionNumber, ProducerNumber, SiteName
from zerotail.deadline import Deadline
from zerotail.errors import Unfinished
from zerotail.lab.database import dsn
from zerotail.lab.fault import continue_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.ports import Result
from zerotail.postgres.connection import session
from zerotail.postgres.feed import number_submissions
from zerotail.postgres.set_aside import Wish
from zerotail.postgres.transaction import Session
from zerotail.resubmission import resubmit_set_aside
from zerotail.running.prepare import prepare

pytestmark = pytest.mark.servers
TAKEN = ("t-1", "t-2", "t-3")
NAMES = itertools.count(1)


class Numbered(Result, frozen=True):
    """How many rows became instructions."""

    count: int


@pytest.fixture
def system(lab: Layout, tmp_path: Path) -> Iterator[Running]:
    """Three rows are set aside: other instructions had their identifiers."""
    system = Running(lab, tmp_path, f"aside{next(NAMES)}", numbered=("cards",), producers=())
    system.write()
    producer = prepare(load(system.config), SiteName("east")).numbers[cards(system)]
    for name in TAKEN:
        system.sql(
            "insert into zerotail.submission (producer, partition, id, value) values (%s, 0, %s, %s) returning id",
            producer,
            name,
            b'{"account": "a", "amount": 5}' + b" " * 300,
        )
        submit(system.config, "east", cards(system), name, b"another")
    number(system, producer)
    yield system
    system.sql("delete from zerotail.set_aside where producer = %s returning number", producer)


def number(system: Running, producer: ProducerNumber) -> None:
    with closing(Session(system.database)) as one:
        one.write(lambda connection: Numbered(number_submissions(connection, producer, PartitionNumber(0), 100)))


def cards(system: Running) -> str:
    return f"cards-{system.name}"


def type_line(*words: str) -> Said:
    """What a command line answers, in this process: a program of its own for each would be most of the test."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = _run(list(words))
    return Said(code, out.getvalue(), err.getvalue())


def say(system: Running, word: str, *arguments: str) -> Said:
    return type_line("submissions", "set-aside", word, *arguments, "--config", str(system.config))


def listed(system: Running, *arguments: str) -> list[dict[str, Any]]:
    """Our rows, of all that the database has set aside."""
    rows: list[dict[str, Any]] = say(system, "list", *arguments, "--json").answer("submissions-list")["rows"]
    return [row for row in rows if row["producer"] == cards(system)]


def set_aside_in_status(system: Running) -> int:
    """How many `status` counts, having said what to type for them."""
    said = type_line("status", "--config", str(system.config))
    found = re.search(r" ! (\d+) submitted rows? (?:is|are) set aside, .*: (zerotail .*)", said.out)
    count: int = type_line("status", "--config", str(system.config), "--json").answer("status")["set_aside"]
    assert (int(found[1]) if found else 0) == count
    assert found is None or found[2] == "zerotail submissions set-aside list --site east"
    return count


def test_rows_are_listed_counted_dropped_and_resubmitted_once(system: Running) -> None:
    others = set_aside_in_status(system) - len(TAKEN)
    assert others >= 0
    rows = listed(system)
    assert [(row["id"], row["partition"], row["bytes"]) for row in rows] == [(name, 0, 329) for name in TAKEN]
    first, second, third = (str(row["number"]) for row in rows)
    said = say(system, "list", "--site", "east")
    assert said.code == 1
    assert f"row {first} · t-1 of {cards(system)} · partition 0" in said.out
    assert "reason    its identifier belongs to serial 1 of partition 0" in said.out
    assert 'value     329 bytes: {"account": "a", "amount": 5}' in said.out
    assert f"zerotail submissions set-aside drop {first} --by NAME --site east" in said.out
    there = type_line("submissions", "set-aside", "list", "--json", "--dsn", dsn(system.lab.database("west")))
    assert there.code == 1, "a standby answers, too"

    assert "row " + first + ": dropped, decided by anna." in say(system, "drop", first, "--by", "anna").out
    assert "nothing changed" in say(system, "drop", first, "--by", "eve").out

    again = say(system, "resubmit", second, "--id", "t-2-b", "--by", "anna", "--json").answer("submissions-resubmit")
    assert (again["id"], again["partition"], again["serial"], again["changed"]) == ("t-2-b", 0, 4, True)
    once_more = say(system, "resubmit", second, "--id", "t-2-b", "--partition", "0", "--by", "eve")
    assert (once_more.code, once_more.out) == (
        0,
        f"row {second}: t-2-b is serial 4 of partition 0, behind the gate; it was resubmitted before.\n",
    )
    stored = system.sql("select serial, value from zerotail.instruction where id = 't-2-b'")
    assert stored == [(4, b'{"account": "a", "amount": 5}' + b" " * 300)]

    assert [row["number"] for row in listed(system)] == [int(third)]
    assert set_aside_in_status(system) == others + 1
    kept = [(row["decision"], row["decided_by"], row["new_id"], row["new_serial"]) for row in listed(system, "--all")]
    assert kept == [("dropped", "anna", None, None), ("resubmitted", "anna", "t-2-b", 4), ("", "", None, None)]
    assert "became    t-2-b, serial 4 of partition 0" in say(system, "list", "--all").out
    assert say(system, "drop", third, "--by", "anna").code == 0
    assert set_aside_in_status(system) == others


def test_a_decision_that_cannot_be_taken_changes_nothing(system: Running) -> None:
    first, second, third = (str(row["number"]) for row in listed(system))
    assert say(system, "drop", first, "--by", "anna").code == 0
    assert say(system, "resubmit", second, "--id", "n-2", "--by", "anna").code == 0
    same = system.sql("select value from zerotail.set_aside where number = %s", int(third))[0][0]
    submit(system.config, "east", cards(system), "n-3", same)
    system.sql(
        "insert into zerotail.submission (producer, partition, id, value) "
        "select producer, 0, 'n-4', '' from zerotail.producer where name = %s returning id",
        cards(system),
    )
    before = listed(system, "--all")
    for word, arguments, reason in (
        ("drop", ("999999999",), "no row 999999999 was set aside"),
        ("drop", (third, second), f"row {second} was resubmitted by anna: it is n-2 of partition 0, serial 4"),
        ("resubmit", ("999999999", "--id", "n-5"), "no row 999999999 was set aside"),
        ("resubmit", (first, "--id", "n-5"), f"row {first} was dropped by anna"),
        ("resubmit", (second, "--id", "n-5"), f"row {second} was resubmitted by anna: it is n-2"),
        ("resubmit", (second, "--id", "n-2", "--partition", "1"), f"row {second} was resubmitted by anna: it is n-2"),
        ("resubmit", (third, "--id", "t-1"), "its identifier belongs to another instruction, serial 1"),
        ("resubmit", (third, "--id", "n-3"), "the identifier n-3 belongs to another instruction, serial 5"),
        ("resubmit", (third, "--id", "n-4"), "the identifier n-4 belongs to a row that waits for its number"),
        ("resubmit", (third, "--id", "n-5", "--partition", "9"), "there are 1 partitions, counted from 0, and 9 is"),
        ("resubmit", (third, "--id", "n-5", "--site", "west"), "the database is a standby; nothing was changed"),
    ):
        said = say(system, word, *arguments, "--by", "eve")
        assert said.code == 3, (said, reason)
        assert said.err.startswith(f"error ZT466: {reason}"), (said.err, reason)
        assert "nothing was changed" in said.err
    assert listed(system, "--all") == before
    assert system.sql("delete from zerotail.submission where id = 'n-4' returning id") == [("n-4",)]
    assert system.sql("select count(*) from zerotail.instruction where id = 'n-5'") == [(0,)]


def test_a_resubmission_counts_when_the_other_site_has_it_and_is_not_stored_twice(system: Running) -> None:
    first = str(listed(system)[0]["number"])
    wish = Wish(int(first), "g-1", None, "anna")
    assert stop_target(system.lab, "west.postgres").bit
    try:
        with pytest.raises(Unfinished, match="nobody knows whether g-1 is accepted") as unknown:
            resubmit_set_aside(load(system.config), "east", wish, patience_seconds=1.0)
    finally:
        continue_target(system.lab, "west.postgres")
    assert unknown.value.code == "ZT464"
    assert say(system, "resubmit", first, "--id", "g-2", "--by", "anna").code == 3
    assert "it was resubmitted before" in say(system, "resubmit", first, "--id", "g-1", "--by", "anna").out
    assert system.sql("select count(*) from zerotail.instruction where id in ('g-1', 'g-2')") == [(1,)]


def test_a_database_without_the_table_is_looked_at_all_the_same(system: Running) -> None:
    with session(system.database, Deadline.after(30)) as primary:
        primary.execute("alter table zerotail.set_aside rename to kept")
        try:
            status = type_line("status", "--config", str(system.config), "--json").answer("status")
            assert (status["set_aside"], status["told_by"]) == (None, "east"), "the other figures are there"
            said = say(system, "list").err
            assert said.startswith("error ZT466: its tables are older than this program")
            assert "Try:  zerotail schema apply" in said
        finally:
            primary.execute("alter table zerotail.kept rename to set_aside")
