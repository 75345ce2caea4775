"""`zerotail emissions`: what is owed, what is in doubt, and the operator's word on it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import Said, call
from support.emitting import Emitting, make_emitting
from support.outside import Judge, wait_for
from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import session
from zerotail.postgres.doubt import read_open_doubts
from zerotail.postgres.owed import read_backlogs

pytestmark = pytest.mark.servers


@pytest.fixture
def fax(lab: Layout, judge: Judge, servers_outside: Layout, tmp_path: Path) -> Iterator[Emitting]:
    """A receiver without memory, whose messages 3 to 7 are in doubt after a lost answer, and its sender waiting."""
    one = make_emitting(lab, judge, tmp_path, ["http-R3"])
    one.start()
    one.owe([b"1", b"2"])
    wait_for("two have arrived", lambda: len(judge.arrived(one.lane("http-R3"))) == 2)
    wait_for("they are acknowledged", lambda: acknowledged(one) == 2)
    judge.control.misbehave(lose_answers=1, deadline=Deadline.after(10))
    one.owe([b"3", b"4", b"5", b"6", b"7", b"8"])
    wait_for("five are in doubt", lambda: numbers_in_doubt(one) == [3, 4, 5, 6, 7])
    yield one
    one.end()


def listed(one: Emitting, *arguments: str) -> Said:
    return call("emissions", "list", "--channel", "http-R3", "--config", str(one.config), "--site", "east", *arguments)


def acknowledged(one: Emitting) -> int:
    with session(dsn(one.lab.database("east")), Deadline.after(10)) as primary:
        return next(lane.acknowledged for lane in read_backlogs(primary) if lane.stage == one.stage)


def numbers_in_doubt(one: Emitting) -> list[int]:
    with session(dsn(one.lab.database("east")), Deadline.after(10)) as primary:
        doubts = read_open_doubts(primary)
    return [doubt.number for doubt in doubts if doubt.partition == one.partition and not doubt.settled]


def settle(one: Emitting, numbers: str, word: str, *more: str) -> Said:
    lane = ("--channel", "http-R3", "--partition", str(one.partition))
    place = ("--dsn", dsn(one.lab.database("east")))
    said = ("--numbers", numbers, "--as", word, "--by", "anna", *(more or ("--sender-is-out",)))
    return call("emissions", "settle", *lane, *said, *place, "--json")


def test_doubts_are_settled_piece_by_piece_and_the_waiting_sender_goes_on(fax: Emitting, judge: Judge) -> None:
    lane = fax.lane("http-R3")
    shown = listed(fax, "--in-doubt", "--json")
    assert shown.code == 1
    doubts = shown.answer("emissions-list")["doubts"]
    assert [one["number"] for one in doubts if one["partition"] == fax.partition] == [3, 4, 5, 6, 7]
    first = settle(fax, "3-5", "sent")
    assert first.code == 0
    assert first.answer("emissions-settle")["left"] == [6, 7]
    assert acknowledged(fax) == 5
    assert len(judge.arrived(lane)) == 7, "nothing is sent while a doubt is left"
    last = settle(fax, "6-7", "sent")
    assert last.answer("emissions-settle")["left"] == []
    wait_for("the sender goes on", lambda: [number for number, _ in judge.arrived(lane)] == list(range(1, 9)))
    with session(dsn(fax.lab.database("east")), Deadline.after(10)) as primary:
        decided = primary.execute(
            "select number, settled, settled_by from zerotail.doubt where channel = %s and partition = %s "
            "and target = %s order by number",
            lane,
        ).fetchall()
    assert decided == [(number, "sent", "anna") for number in range(3, 8)]


def test_nothing_is_settled_while_a_sender_of_before_may_still_send(fax: Emitting) -> None:
    change = (
        "update zerotail.doubt set listed_at = clock_timestamp() + interval '{}' where channel = %s and partition = %s"
    )
    with session(dsn(fax.lab.database("east")), Deadline.after(10)) as primary:
        primary.execute(change.format("1 h").encode(), fax.lane("http-R3")[:2])
        said = settle(fax, "3-7", "sent", "--json")
        assert said.code == 3
        assert "who sent before they were listed may still send for 3" in said.answer("error")["message"]
        primary.execute(change.format("-3 s").encode(), fax.lane("http-R3")[:2])
    assert settle(fax, "3-7", "sent", "--json").code == 0


def test_messages_settled_as_not_sent_are_sent_again(fax: Emitting, judge: Judge) -> None:
    assert settle(fax, "3-7", "not-sent").code == 0
    wait_for("they are sent again", lambda: acknowledged(fax) == 8)
    arrived = [number for number, _ in judge.arrived(fax.lane("http-R3"))]
    assert arrived == [1, 2, 3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 8]


def test_what_is_not_in_doubt_cannot_be_settled(fax: Emitting) -> None:
    for numbers in ("2-3", "7-8"):
        said = settle(fax, numbers, "sent")
        assert said.code == 3
        assert "not in doubt" in said.answer("error")["message"]
    assert numbers_in_doubt(fax) == [3, 4, 5, 6, 7]


def test_a_message_cannot_be_settled_as_sent_behind_one_that_was_not(fax: Emitting) -> None:
    assert settle(fax, "4", "not-sent").code == 0
    said = settle(fax, "5", "sent")
    assert said.code == 3
    assert said.answer("error")["message"] == "messages leave in order: 5 cannot have been sent when 4 was not."
    assert settle(fax, "4", "sent").code == 3
    assert settle(fax, "3", "sent").code == 0
    assert settle(fax, "5-7", "not-sent").answer("emissions-settle")["left"] == []


def test_a_new_sender_lists_the_doubts_anew_and_only_those_can_be_settled(fax: Emitting) -> None:
    fax.processes[-1].send_signal(signal.SIGKILL)
    fax.processes[-1].wait()
    assert settle(fax, "3", "sent").code == 0, "the newest sender is gone, but it had sent nothing"
    fax.start()
    wait_for("the new sender has listed the rest", lambda: numbers_in_doubt(fax) == [4, 5, 6, 7])
    assert settle(fax, "4-7", "sent").code == 0
    wait_for("the sender goes on", lambda: acknowledged(fax) == 8)


def test_the_list_shows_what_each_lane_owes(lab: Layout, judge: Judge, servers_outside: Layout, tmp_path: Path) -> None:
    one = make_emitting(lab, judge, tmp_path, ["http-R3"])
    one.owe([b"abc", b"de"])
    found = listed(one, "--json").answer("emissions-list")["lanes"]
    (lane,) = [lane for lane in found if lane["partition"] == one.partition]
    assert (lane["journaled"], lane["acknowledged"], lane["messages"]) == (2, 0, 2)
    assert lane["bytes"] == 2 * 4 + 5
    assert listed(one).out.splitlines()[0].split()[:2] == ["channel", "part"]


def test_a_wrong_call_says_what_is_wrong(tmp_path: Path) -> None:
    assert call("emissions", "list").code == 2
    assert call("emissions", "list", "--dsn", "host=127.0.0.1", "--site", "east").code == 2
    place = ("--dsn", "host=127.0.0.1 port=1")
    base = ("emissions", "settle", "--channel", "c", "--partition", "0", "--by", "anna", *place)
    for numbers in ("0", "5-4", "x", "1-99999"):
        assert call(*base, "--as", "sent", "--numbers", numbers).code == 2
    assert call(*base, "--as", "sent", "--numbers", "5").code == 4


def test_doubts_at_a_standby_cannot_be_settled(lab: Layout) -> None:
    place = dsn(lab.database("west"))
    said = call(
        *("emissions", "settle", "--channel", "c", "--partition", "0", "--by", "anna", "--numbers", "1"),
        *("--as", "sent", "--dsn", place, "--json"),
    )
    assert said.code == 3
    assert "standby" in said.answer("error")["message"]
