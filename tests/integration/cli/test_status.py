"""`zerotail status`: the answer, the figures and the reasons, with everything alive and with a site dead, frozen or
cut off; and never a wait that is longer than a person's patience.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from support.watched import CARDS, Watched, make_watched
from zerotail.core.identity import PartitionNumber, SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.fault import continue_target, cut_link, heal_link, kill_target, start_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.lab.link import CutMode
from zerotail.postgres.connection import connect
from zerotail.running.report import Reporter

pytestmark = pytest.mark.servers

NEVER_LONGER_SECONDS = 6.0
"""Two seconds on a machine of its own; here other tests run beside."""


@pytest.fixture
def watched(lab: Layout, tmp_path: Path) -> Watched:
    """Both sites well, nothing to do, and west in step."""
    made = make_watched(lab, tmp_path)
    wait_until_ready(made)
    return made


def wait_until_ready(watched: Watched) -> None:
    """Return when both sites answer and west has everything."""
    wait_until("all is well", lambda: watched.status()[0].code == 0, Deadline.after(60), every_seconds=0.1)


@contextmanager
def working(watched: Watched) -> Iterator[None]:
    """Let the processes of east say that they are at work."""
    with closing(Reporter(SiteName("east"), watched.east)) as reporter:
        reporter.say("stage", "settle", PartitionNumber(0), "working")
        reporter.say("producer", "cards", PartitionNumber(0), "working")
        yield


def first(text: str) -> str:
    return text.splitlines()[0]


def test_all_well_is_answered_with_yes_in_both_forms(watched: Watched) -> None:
    with working(watched):
        watched.submit(3, seconds_ago=2)
        wait_until_ready(watched)
        said, seconds = watched.status()
        answer = watched.status("--json")[0].answer("status")
    assert said.code == 0
    assert first(said.out).startswith("READY for takeover to west     nothing would be lost: gate open")
    assert "epoch 256 (east, live, gated)" in first(said.out)
    assert "kafka 1/1   postgres primary, sync to west (streaming" in said.out
    assert "kafka 1/1   postgres standby, follows" in said.out
    assert "\x1b" not in said.out
    assert seconds < NEVER_LONGER_SECONDS
    assert (answer["answer"], answer["target"], answer["told_by"]) == ("ready", "west", "east")
    assert (answer["epoch"]["epoch"], answer["epoch"]["generation"]) == (256, 1)
    (stage,) = answer["stages"]
    assert (stage["applied"], stage["waiting"], stage["journal_behind"]) == (0, 3, 0)
    assert 2 <= stage["lag_seconds"] < 60


def test_a_cut_link_says_why_emission_stands(watched: Watched) -> None:
    assert cut_link(watched.lab, "both", CutMode.HANG).bit
    said, seconds = watched.status()
    assert said.code == 1
    assert first(said.out).startswith("NOT READY for takeover to west     west's database does not answer")
    assert "! emission stands: gate closed: west's database does not answer" in said.out
    assert "postgres ?  unknown since " in said.out
    assert seconds < NEVER_LONGER_SECONDS
    assert watched.status("--json")[0].answer("status")["stages"][0]["journal_behind"] is None
    assert heal_link(watched.lab, "both").bit
    wait_until_ready(watched)


def test_a_standby_that_lags_says_how_much_it_lacks(watched: Watched) -> None:
    """The link is cut, and whoever looks can reach west's database on another way."""
    content = json.loads(watched.config.read_text())
    direct = f"port={watched.lab.database('west').port}"
    through = f"port={watched.lab.database('west').link_port}"
    content["sites"]["west"]["database"]["dsn"] = content["sites"]["west"]["database"]["dsn"].replace(through, direct)
    watched.config.write_text(json.dumps(content))
    assert cut_link(watched.lab, "both", CutMode.HANG).bit
    watched.submit(500)
    said, _ = watched.status()
    assert said.code == 1
    assert "west has not flushed the last " in first(said.out)
    assert "! emission stands: gate closed: west has not flushed the last " in said.out


@pytest.mark.parametrize("part", ["west", "west.postgres", "west.kafka"])
def test_a_frozen_standby_is_unknown_and_holds_nobody_up(watched: Watched, part: str) -> None:
    assert stop_target(watched.lab, part).bit
    said, seconds = watched.status()
    assert said.code == 1
    assert first(said.out).startswith("NOT READY for takeover to west     ")
    line = next(line for line in said.out.splitlines() if line.startswith(" site west"))
    assert (re.search(r"postgres \?  unknown since [\d:]+, no answer within 1 s", line) is not None) == (
        part != "west.kafka"
    )
    assert ("kafka ?  unknown since " in line) == (part != "west.postgres")
    assert seconds < NEVER_LONGER_SECONDS
    assert continue_target(watched.lab, part).bit
    wait_until_ready(watched)


def test_a_killed_active_site_is_unknown_and_the_other_one_tells_what_it_has(watched: Watched) -> None:
    with working(watched):
        watched.submit(4)
        wait_until_ready(watched)
    assert kill_target(watched.lab, "east").bit
    said, seconds = watched.status()
    assert said.code == 1
    assert first(said.out).startswith("UNKNOWN for takeover to west     east's database is down; nobody knows whether")
    assert "postgres down since " in said.out
    assert "kafka 0/1" in said.out
    assert "(as west's database has it)" in said.out
    assert seconds < NEVER_LONGER_SECONDS
    (stage,) = watched.status("--json")[0].answer("status")["stages"]
    assert stage["waiting"] == 4
    assert start_target(watched.lab, "east").bit


def test_a_frozen_active_site_holds_nobody_up(watched: Watched) -> None:
    assert stop_target(watched.lab, "east").bit
    said, seconds = watched.status()
    assert said.code == 1
    assert first(said.out).startswith("UNKNOWN for takeover to west     east's database does not answer; ")
    assert seconds < NEVER_LONGER_SECONDS
    assert continue_target(watched.lab, "east").bit


def test_when_neither_site_answers_the_exit_code_is_4_and_everything_is_unknown(watched: Watched) -> None:
    for site in ("east", "west"):
        assert stop_target(watched.lab, site).bit
    said, seconds = watched.status()
    assert said.code == 4
    assert first(said.out).startswith("UNKNOWN for takeover     east's database does not answer")
    assert " settle      0   ?  unknown since " in said.out
    assert seconds < NEVER_LONGER_SECONDS
    answered = watched.status("--json")[0]
    assert answered.code == 4
    assert answered.answer("status")["answered"] is False


def test_one_site_alone_can_be_asked(watched: Watched) -> None:
    said, _ = watched.status("--site", "west")
    assert said.code == 1
    assert "east's database was not asked" in first(said.out)
    assert watched.status("--site", "north")[0].code == 2


def test_a_stopped_and_a_silent_process_are_said(watched: Watched) -> None:
    reporter = Reporter(SiteName("east"), watched.east)
    reporter.say("stage", "settle", PartitionNumber(0), "stopped", "a record that cannot be read", applied=41)
    reporter.say("emitter", "bank", PartitionNumber(0), "waiting", "the gate is closed", sent=7)
    reporter.close()
    with connect(watched.east, Deadline.after(10)) as primary:
        primary.execute("update zerotail.epoch set opened_at = opened_at - interval '1 h'")
        primary.execute("update zerotail.process set seen_at = seen_at - interval '1 min' where role = 'emitter'")
    said, _ = watched.status()
    assert said.code == 1
    assert "settle partition 0 has stopped: a record that cannot be read" in first(said.out)
    assert "! stage settle partition 0 has stopped: a record that cannot be read" in said.out
    assert re.search(r"! emitter bank/0 at east is silent for 6\d s", said.out)
    assert re.search(r"\?  silent for 6\d s, was waiting: the gate is closed", said.out)
    assert "sent 7" in said.out
    (stage,) = watched.status("--json")[0].answer("status")["stages"]
    assert stage["stopped"] == "a record that cannot be read"


def test_work_that_nobody_takes_is_not_ready(watched: Watched) -> None:
    watched.submit(5, seconds_ago=20)
    said, _ = watched.status()
    assert said.code == 1
    assert "5 records wait for partition 0 of stage settle, and nothing was heard of " in first(said.out)
    assert "zerotail run all --site east" in first(said.out)
    with working(watched):
        wait_until_ready(watched)


def test_a_stall_is_said_after_the_stages_own_limit(lab: Layout, tmp_path: Path) -> None:
    watched = make_watched(lab, tmp_path, stalled_after="8s")
    watched.submit(5, seconds_ago=1)
    assert "is stalled" not in watched.status()[0].out

    def stalled() -> bool:
        said = watched.status()[0]
        return said.code == 1 and "! stage settle partition 0 is stalled: 5 records wait" in said.out

    wait_until("the stall is said", stalled, Deadline.after(30), every_seconds=0.2)


def test_a_request_to_send_again_is_shown_until_it_is_met(watched: Watched) -> None:
    with connect(watched.east, Deadline.after(10)) as primary:
        primary.execute("insert into zerotail.request values (%s, 0, 2, 5)", (CARDS,))
    assert "sent again: cards partition 0 from serial 5 on (request 2)" in watched.status()[0].out
    with connect(watched.east, Deadline.after(10)) as primary:
        primary.execute("""update zerotail.head set vector = '{"1": 5}'""")
    assert "sent again" not in watched.status()[0].out


def test_an_exposed_epoch_is_the_first_word(watched: Watched) -> None:
    with connect(watched.east, Deadline.after(10)) as primary:
        primary.execute("update zerotail.epoch set durability = 'exposed'")
    said, _ = watched.status()
    assert said.code == 1
    assert said.out.startswith("EXPOSED, NOT READY for takeover to west")


@contextmanager
def watching(watched: Watched, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([*watched.command, "--watch", *arguments], stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(file: int, words: bytes, seconds: float = 30.0) -> bytes:
    """Everything that is printed up to these words."""
    deadline = Deadline.after(seconds)
    printed = b""
    while words not in printed:
        assert select.select([file], [], [], deadline.seconds_left)[0], printed
        piece = os.read(file, 65536)
        assert piece, printed
        printed += piece
    return printed


def test_a_watch_without_a_terminal_prints_a_block_per_change_and_ends_well(watched: Watched) -> None:
    with watching(watched) as process:
        assert process.stdout is not None
        file = process.stdout.fileno()
        assert b"READY for takeover to west" in read_until(file, b"site west")
        assert stop_target(watched.lab, "west").bit
        assert b"NOT READY" in read_until(file, b"postgres ?  unknown since ")
        assert continue_target(watched.lab, "west").bit
        read_until(file, b"  READY for takeover")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_a_watch_remembers_since_when_something_is_unknown(watched: Watched) -> None:
    assert stop_target(watched.lab, "west.postgres").bit
    with watching(watched, "--json") as process:
        assert process.stdout is not None
        looks = [json.loads(process.stdout.readline()) for _ in range(3)]
    unknown = [look["sites"][1]["database"]["unknown"]["since"] for look in looks]
    assert len(set(unknown)) == 1
    assert len({look["observed_at"] for look in looks}) == 3


def test_a_watch_on_a_terminal_redraws_and_ends_with_ctrl_c(watched: Watched) -> None:
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    process = subprocess.Popen([*watched.command, "--watch"], stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    try:
        read_until(master, b"READY for takeover")
        assert b"\x1b[" in read_until(master, b"READY for takeover"), "drawn over, in colour"
        process.send_signal(signal.SIGINT)
        deadline = Deadline.after(20)
        while process.poll() is None and not deadline.passed:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    os.read(master, 65536)
                except OSError:  # the other side is closed
                    break
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_looking_loads_nothing_that_it_does_not_need(watched: Watched) -> None:
    program = (
        "import sys; from zerotail.cli.frame import _run; "
        f"code = _run(['status', '--config', {str(watched.config)!r}]); "
        "print(code, sorted({'numpy', 'pyarrow', 'pyspark', 'rich', 'jsonschema'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "0 []"
