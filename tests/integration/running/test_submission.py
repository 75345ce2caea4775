"""A business submits from Python: an instruction counts when its row is behind the gate."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path

import pytest

from support.running import Running
from support.seeds import seed_of
from zerotail import Submitter, submit
from zerotail.config import load
from zerotail.core.identity import Epoch, PartitionNumber, ProducerNumber, Serial, SiteName, TopicName
from zerotail.core.intake import MOST_VALUE_BYTES
from zerotail.core.record import digest_of
from zerotail.deadline import Deadline
from zerotail.errors import Misused, Refused, Unfinished
from zerotail.lab.fault import continue_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.ports import Batch, Done, PollRecords, Result, SendRecords
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.feed import number_submissions
from zerotail.postgres.spooled import SpooledRow, Stored, store_rows
from zerotail.postgres.transaction import Session
from zerotail.running.prepare import adapter_settings, prepare
from zerotail.wiring import SiteAdapters

pytestmark = pytest.mark.servers


@pytest.fixture
def system(lab: Layout, tmp_path: Path) -> Running:
    system = Running(lab, tmp_path, "submitted", producers=(), numbered=("cards", "wires"))
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


def test_an_answer_says_whether_both_sites_have_it_and_a_site_alone_that_holds_gives_none(system: Running) -> None:
    value = {"account": "a", "amount": 5}
    current = "(select max(epoch) from zerotail.epoch)"
    change = f"update zerotail.epoch set durability = %s where epoch = {current} returning 1"
    assert submit(system.config, "east", "cards-submitted", "d-1", value).durability == "gated"
    system.sql(change, "exposed")
    try:
        second = submit(system.config, "east", "cards-submitted", "d-2", value)
        assert second.durability == "exposed"
        content = system.content() | {"takeover": {"exposed": "hold"}}
        system.config.write_text(json.dumps(content))
        with Submitter(system.config, "east") as business:
            with pytest.raises(Unfinished, match="d-3 is stored at east and not accepted: east works without") as held:
                business.submit("cards-submitted", "d-3", value, patience_seconds=0.3)
            assert held.value.code == "ZT468"
            system.sql(change, "gated")
            third = business.submit("cards-submitted", "d-3", value)
            assert (third, third.durability) == (second + 1, "gated")
    finally:
        system.sql(change, "gated")


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


def test_a_value_that_no_record_can_hold_is_refused_and_the_largest_that_fits_is_not(system: Running) -> None:
    fits, unfit = bytes(MOST_VALUE_BYTES), bytes(MOST_VALUE_BYTES + 1)
    with Submitter(system.config, "east") as business:
        assert business.submit("cards-submitted", "l-1", fits)
        with pytest.raises(Refused, match="l-2 was not taken at east: a value has 900000 bytes at most"):
            business.submit("cards-submitted", "l-2", unfit)
        with pytest.raises(Refused, match="an identifier has 1000 bytes at most, and this one has 1001"):
            business.submit("cards-submitted", "é" * 500 + "x", b"{}")
    rows = "(producer, partition, id, value) select producer, 0, %s, %s from zerotail.producer"
    waiting = f"insert into zerotail.submission {rows} where name = 'cards-submitted' returning id"
    assert system.sql(waiting, "l-3", fits) == [("l-3",)]
    with pytest.raises(Refused, match="900000 bytes at most, and that of l-4 of cards-submitted has 900001"):
        system.sql(waiting, "l-4", unfit)
    numbered = waiting.replace("submission", "instruction").replace("partition,", "partition, serial,", 1)
    with pytest.raises(Refused, match="900000 bytes at most, and that of l-5 of cards-submitted has 900001"):
        system.sql(numbered.replace("producer, 0,", "producer, 0, 1000000,"), "l-5", unfit)
    assert system.sql("delete from zerotail.submission where id = 'l-3' returning id") == [("l-3",)]


def test_entries_of_a_spool_that_could_never_be_processed_are_named_and_the_others_are_stored(system: Running) -> None:
    rows = [
        SpooledRow("p-1", 0, bytes(MOST_VALUE_BYTES + 1)),
        SpooledRow("p-2", 0, bytes(MOST_VALUE_BYTES)),
        SpooledRow("p-3", 99, b"{}"),
    ]
    with closing(Session(system.database)) as draining:
        stored = draining.write(lambda one: store_rows(one, SiteName("east"), "cards-submitted", rows))
        again = draining.write(lambda one: store_rows(one, SiteName("east"), "cards-submitted", rows))
    assert isinstance(stored, Stored)
    assert isinstance(again, Stored)
    assert (stored.new, stored.refused) == (1, (0, 2))
    assert (again.new, again.refused) == (0, (0, 2)), "an answer was not heard"
    aside = system.sql(
        "delete from zerotail.set_aside using zerotail.producer where producer.producer = set_aside.producer "
        "and name = 'cards-submitted' and id = any(%s) returning id, reason",
        ["p-1", "p-2", "p-3"],
    )
    aside.sort()
    assert [identifier for identifier, _ in aside] == ["p-1", "p-3"]
    assert "bytes at most, and this one has 900001" in aside[0][1]
    assert aside[1][1] == "no stage has partition 99 (from a spool)"


def test_the_largest_value_that_is_taken_goes_through_kafka(system: Running) -> None:
    value = random.Random(seed_of("largest")).randbytes(MOST_VALUE_BYTES)
    topic, partition = TopicName(system.topic), PartitionNumber(0)
    with closing(SiteAdapters(adapter_settings(load(system.config), SiteName("east")))) as adapters:

        def sent(content: bytes) -> bool:
            one = Batch([ProducerNumber(7)], [Serial(1)], [Epoch(256)], [digest_of(content)], [content])
            return isinstance(adapters.carry_out(SendRecords(topic, partition, one)), Done)

        assert sent(value)
        assert not sent(bytes(1_000_000)), "this is what the limit keeps away from"
        found: list[bytes] = []
        hint = None
        deadline = Deadline.after(30)
        while not found and not deadline.passed:
            polled = adapters.carry_out(PollRecords(topic, partition, hint, 10))
            found, hint = polled.batch.values, polled.hint
    assert found == [value]


def test_a_row_of_a_time_without_a_limit_is_set_aside_when_it_is_numbered(system: Running) -> None:
    (producer,) = system.sql("select producer from zerotail.producer where name = 'cards-submitted'")[0]
    with session(system.database, Deadline.after(30)) as primary:
        primary.execute("set session_replication_role = replica")
        primary.execute(
            "insert into zerotail.submission (producer, partition, id, value) values (%s, 0, 'o-1', %s)",
            (producer, bytes(MOST_VALUE_BYTES + 1)),
        )
    system.sql(
        "insert into zerotail.submission (producer, partition, id, value) values (%s, 0, 'o-2', %s) returning id",
        producer,
        bytes(MOST_VALUE_BYTES),
    )
    with closing(Session(system.database)) as numbering:
        numbered = numbering.write(lambda one: Numbered(number_submissions(one, producer, PartitionNumber(0), 10)))
    assert numbered == Numbered(1)
    aside = "delete from zerotail.set_aside where producer = %s returning id, reason"
    assert system.sql(aside, producer) == [("o-1", "its value has 900001 bytes: no record can hold it")]
    stored = "select id from zerotail.instruction where producer = %s and id in ('o-1', 'o-2')"
    assert system.sql(stored, producer) == [("o-2",)]


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
    aside = "delete from zerotail.set_aside where producer = %s returning id, value, reason"
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


def test_rows_are_numbered_in_the_order_in_which_the_database_took_them_whatever_the_clocks_say(
    system: Running,
) -> None:
    (producer,) = system.sql("select producer from zerotail.producer where name = 'cards-submitted'")[0]
    insert = (
        "insert into zerotail.submission (producer, partition, id, value, submitted_at) "
        "values (%s, 0, %s, '{}', now() - %s * interval '1 hour') returning id"
    )
    taken = ["t-3", "t-1", "t-2"]
    for hours, name in enumerate(taken):
        system.sql(insert, producer, name, hours)
    with closing(Session(system.database)) as numbering:
        for piece in (2, 1):

            def number(connection: Connection, rows: int = piece) -> Numbered:
                return Numbered(number_submissions(connection, producer, PartitionNumber(0), rows))

            assert numbering.write(number) == Numbered(piece)
    stored = "select id from zerotail.instruction where producer = %s and id like %s order by serial"
    assert [name for (name,) in system.sql(stored, producer, "t-%")] == taken
