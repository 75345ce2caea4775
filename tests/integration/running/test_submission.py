"""A business submits from Python: an instruction counts when its row is behind the gate."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from support.running import Running
from zerotail import Submitter, submit
from zerotail.config import load
from zerotail.core.identity import PartitionNumber, SiteName
from zerotail.errors import Misused, Refused, Unfinished
from zerotail.lab.fault import continue_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.ports import Result
from zerotail.postgres.feed import number_submissions
from zerotail.postgres.transaction import Session
from zerotail.running.prepare import prepare

pytestmark = pytest.mark.servers


@pytest.fixture
def system(lab: Layout, tmp_path: Path) -> Running:
    system = Running(lab, tmp_path, "submitted")
    system.write()
    prepare(load(system.config), SiteName("east"))
    return system


def test_an_instruction_is_accepted_once_however_often_it_is_submitted(system: Running) -> None:
    with Submitter(system.config, "east") as business:
        first = business.submit("cards-submitted", "c-1", {"account": "a", "amount": 5})
        second = business.submit("cards-submitted", "c-2", {"account": "a", "amount": 6})
        again = business.submit("cards-submitted", "c-1", {"account": "a", "amount": 5})
    assert (second, again) == (first + 1, first)
    assert submit(system.config, "east", "cards-submitted", "c-2", {"account": "a", "amount": 6}) == second
    with pytest.raises(Misused, match="no producer"):
        submit(system.config, "east", "nobody", "c-3", {})


def test_what_could_never_be_processed_is_refused_and_not_stored(system: Running) -> None:
    with Submitter(system.config, "east") as business:
        serial = business.submit("cards-submitted", "r-1", {"account": "a", "amount": 5})
        with pytest.raises(Refused, match="there are 1 partitions, counted from 0, and 99 is none of them"):
            business.submit("cards-submitted", "r-2", {"account": "a", "amount": 5}, partition=99)
        with pytest.raises(Refused, match=f"belongs to another instruction, serial {serial} of partition 0"):
            business.submit("cards-submitted", "r-1", {"account": "a", "amount": 6})
    assert system.sql("select count(*) from zerotail.instruction where id = any(%s)", ["r-1", "r-2"]) == [(1,)]


def test_sql_that_brings_what_could_never_be_processed_fails_with_a_sentence(system: Running) -> None:
    insert = (
        "insert into zerotail.submission (producer, partition, id, value) "
        "select producer, %s, %s, %s from zerotail.producer where name = 'cards-submitted' returning id"
    )
    submit(system.config, "east", "cards-submitted", "s-1", b"{}")
    with pytest.raises(Refused, match=r"partitions, and partition 99 is not one of them"):
        system.sql(insert, 99, "s-2", b"{}")
    with pytest.raises(Refused, match="identifier s-1 of cards-submitted belongs to another instruction"):
        system.sql(insert, 0, "s-1", b"other")
    assert system.sql(insert, 0, "s-1", b"{}") == [("s-1",)], "the same again is welcome: an answer was not heard"
    with pytest.raises(Refused, match=r"partitions, and partition 99 is not one of them"):
        system.sql(
            "insert into zerotail.instruction (producer, partition, serial, id, value) "
            "select producer, 99, 1, 's-3', '' from zerotail.producer where name = 'cards-submitted' returning id"
        )


def test_a_row_whose_name_was_taken_before_it_was_numbered_is_set_aside(system: Running) -> None:
    (producer,) = system.sql("select producer from zerotail.producer where name = 'cards-submitted'")[0]
    insert = "insert into zerotail.submission (producer, partition, id, value) values (%s, 0, %s, %s) returning id"
    for name, value in (("a-1", b"1"), ("a-2", b"2")):
        system.sql(insert, producer, name, value)
    taken = submit(system.config, "east", "cards-submitted", "a-1", b"another")
    same = submit(system.config, "east", "cards-submitted", "a-2", b"2")
    with closing(Session(system.database)) as session:
        session.write(lambda one: Numbered(number_submissions(one, producer, PartitionNumber(0), 10)))
    assert system.sql("select count(*) from zerotail.submission where producer = %s", producer) == [(0,)]
    aside = "select id, value, reason from zerotail.set_aside where producer = %s"
    assert system.sql(aside, producer) == [("a-1", b"1", f"its identifier belongs to serial {taken} of partition 0")]
    assert same == taken + 1


class Numbered(Result, frozen=True):
    """How many rows became instructions."""

    count: int


def test_an_instruction_that_the_other_site_lacks_is_not_accepted(system: Running, lab: Layout) -> None:
    with Submitter(system.config, "east") as business:
        business.submit("cards-submitted", "w-1", {"account": "a", "amount": 5})
        assert stop_target(lab, "west.postgres").bit
        try:
            with pytest.raises(Unfinished, match="nobody knows"):
                business.submit("cards-submitted", "w-2", {"account": "a", "amount": 5}, patience_seconds=1)
        finally:
            continue_target(lab, "west.postgres")
        rows = system.sql("select count(*) from zerotail.instruction where id = 'w-2'")
        assert rows == [(1,)], "it is there, and nobody was told"
        assert business.submit("cards-submitted", "w-2", {"account": "a", "amount": 5}) > 0
