"""Wrong calls on real servers: the documented exit code, one clear message, nothing changed. In this order.

`docs/takeover.md` has the table of them.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import sql

from support.arena import Arena
from support.command import Said, call
from support.flow import PATIENCE_SECONDS
from support.sites import Sites, working_sites
from zerotail.core.identity import SiteName, epoch_of
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.fault import kill_target, start_target
from zerotail.operate.notebook import Note, Notebook, now
from zerotail.postgres.connection import Connection, one_row, session
from zerotail.postgres.promotion import promote

pytestmark = [pytest.mark.servers, pytest.mark.chapters]

FIRST, ALONE, WITH_LOSS = epoch_of(1, 0), epoch_of(2, 0), epoch_of(1002, 1)
UNFENCED = ("--accept-unfenced-site", "east")
KILL_THE_CALLER = [sys.executable, "-c", f"import os; os.kill(os.getppid(), {int(signal.SIGKILL)})"]


@pytest.fixture(scope="module")
def sites(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Two sites with a flow that has sent something; what waits at the standby is not needed."""
    with working_sites(arena.renewed(), tmp_path_factory.mktemp("wrong"), ("east",), 20) as pair:
        yield pair


def refused(said: Said) -> tuple[int, str]:
    """The exit code and the number of the one error that was said."""
    return said.code, said.answer("error")["code"]


def test_wrong_calls_are_refused_with_their_codes_and_change_nothing(sites: Sites) -> None:
    plan = sites.call("takeover", "plan", "--to", "west", "--json").answer("takeover-plan")
    assert plan["needs"] == [" ".join(UNFENCED)]
    stated = ("takeover", "run", "--to", "west", *UNFENCED)
    for words, code, number in (
        (("takeover", "plan", "--to", "nowhere"), 2, "ZT115"),
        (("handover", "plan", "--to", "nowhere"), 2, "ZT115"),
        (("rejoin", "plan", "--site", "nowhere"), 2, "ZT115"),
        (("takeover", "run", "--to", "west"), 3, "ZT450"),
        (stated, 3, "ZT452"),
        ((*stated, "--plan", plan["id"]), 3, "ZT452"),
        ((*stated, "--plan", "0123456789", "--confirm", "west"), 3, "ZT451"),
        ((*stated, "--plan", plan["id"], "--confirm", "east"), 3, "ZT453"),
        (("takeover", "plan", "--to", "east", "--accept-lost-site", "west"), 3, "ZT457"),
        (("takeover", "plan", "--to", "west", "--accept-unfenced-site", "west"), 2, "ZT122"),
        (("takeover", "resume"), 3, "ZT456"),
        (("handover", "resume"), 3, "ZT456"),
        (("rejoin", "plan", "--site", "east"), 3, "ZT433"),
    ):
        assert refused(sites.call(*words, "--json")) == (code, number), words
    assert sites.call("takeover", "status").code == 0
    require_untouched(sites)
    assert not sites.state.exists() or not list(sites.state.iterdir())


@pytest.mark.parametrize("setting", ["lyon", ""])
def test_a_role_moves_only_where_commits_return_and_wait_for_the_other_site(sites: Sites, setting: str) -> None:
    with session(sites.dsn("east"), Deadline.after(PATIENCE_SECONDS)) as east:
        wait_for_standby(east, setting)
        try:
            for words in (("handover", "plan", "--to", "west"), ("rejoin", "plan", "--site", "west")):
                said = sites.call(*words, "--json", at="east")
                assert refused(said) == (3, "ZT449"), words
                assert "synchronous_standby_names = 'FIRST 1 (west)'" in said.answer("error")["tries"][0]
        finally:
            wait_for_standby(east, "FIRST 1 (west)")
    assert sites.call("rejoin", "plan", "--site", "west", "--json", at="east").code == 0


def wait_for_standby(east: Connection, setting: str) -> None:
    """Let commits wait for this name, in force when this returns."""
    east.execute(sql.SQL("alter system set synchronous_standby_names = {}").format(setting))
    east.execute("select pg_reload_conf()")
    shown = "show synchronous_standby_names"
    wait_until("it is in force", lambda: one_row(east, shown) == (setting,), Deadline.after(PATIENCE_SECONDS))


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("dbname=postgres", "dbname=nosuch"), "ZT313", 'database "nosuch" does not exist'),
        (("dbname=postgres", "dbname=template1"), "ZT315", "our tables are missing"),
        (("user=postgres", "user=nobody_knows"), "ZT313", 'role "nobody_knows" does not exist'),
    ],
)
def test_a_database_that_answers_is_not_said_to_be_silent(
    sites: Sites, tmp_path: Path, change: tuple[str, str], code: str, said: str
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(sites.config("west").read_text().replace(*change))
    for words in (("takeover", "plan", "--to", "west"), ("handover", "plan", "--to", "west"), ("failback", "plan")):
        answer = sites.call(*words, "--config", str(wrong), "--json")
        assert refused(answer) == (3, code), words
        assert said in answer.answer("error")["message"]
    status = sites.call("status", "--config", str(wrong))
    assert (status.code, "does not answer" in status.out) == (1, False), status.out


def test_a_takeover_is_refused_where_the_code_cannot_be_loaded(sites: Sites, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    content = json.loads(sites.config("west").read_text())
    for stage in content["stages"].values():
        stage["handler"] = "half_written:Handler"
    broken.write_text(json.dumps(content))
    (tmp_path / "half_written.py").write_text("def broken(:\n")
    for words in (("takeover", "plan", "--to", "west"), ("handover", "plan", "--to", "west")):
        said = sites.call(*words, "--config", str(broken), "--json")
        assert refused(said) == (3, "ZT448"), words
        assert said.answer("error")["tries"][0] == f"correct {tmp_path / 'half_written.py'}, line 1"
    require_untouched(sites)


def test_a_takeover_to_the_site_that_is_active_says_so_and_changes_nothing(sites: Sites) -> None:
    for words in (("takeover", "run", "--to", "east"), ("handover", "run", "--to", "east"), ("failback", "run")):
        said = sites.call(*words, "--json", at="east")
        assert (said.code, said.answer(f"{words[0]}-report")["changed"]) == (0, False)
        told = sites.call(*words, at="east")
        assert (told.code, told.out) == (0, f"nothing to do: east is the active site already (epoch {FIRST})\n")
    told = sites.call("rejoin", "run", "--site", "west")
    assert (told.code, told.out) == (0, f"nothing to do: west is the standby already (epoch {FIRST})\n")
    require_untouched(sites)


def test_a_replay_with_other_code_is_refused_before_it_begins(sites: Sites) -> None:
    stated = ("--to", "west", *UNFENCED)
    config = sites.config("west")
    before = config.read_text()
    assert "support.sites:handler" in before
    config.write_text(before.replace("support.sites:handler", "support.sites:newer_handler"))
    said = sites.call("takeover", "plan", *stated, "--json")
    assert refused(said) == (3, "ZT447")
    assert "were made by version 1, and its code is version 2 today" in said.answer("error")["message"]
    accepted = sites.call("takeover", "plan", *stated, "--accept-version", "--json").answer("takeover-plan")
    assert "--accept-version" in accepted["needs"]
    config.write_text(
        before.replace('"replay"', '"database"').replace("support.sites:handler", "support.sites:newer_handler")
    )
    assert sites.call("takeover", "plan", *stated, "--json").answer("takeover-plan")["needs"] == [" ".join(UNFENCED)]
    config.write_text(before)
    require_untouched(sites)


def test_a_plan_that_was_printed_before_the_world_changed_is_refused(sites: Sites) -> None:
    stated = ("--to", "west", *UNFENCED)
    seen_alive = sites.call("takeover", "plan", *stated, "--json").answer("takeover-plan")["id"]
    assert kill_target(sites.lab, "east.postgres").bit
    said = sites.call("takeover", "run", *stated, "--plan", seen_alive, "--confirm", "west", "--json")
    assert refused(said) == (3, "ZT451")
    assert "east: its database does not answer" in said.answer("error")["why"]
    seen_dead = sites.call("takeover", "plan", "--to", "west", "--json").answer("takeover-plan")["id"]
    assert start_target(sites.lab, "east.postgres").bit
    said = sites.call("takeover", "run", *stated, "--plan", seen_dead, "--confirm", "west", "--json")
    assert refused(said) == (3, "ZT451")
    require_untouched(sites)


def test_a_takeover_during_a_failback_is_refused_and_what_had_begun_can_be_taken_back(sites: Sites) -> None:
    config = sites.folder / "to-west.yaml"
    content = json.loads(sites.config("west").read_text())
    content |= {"prefer": "west", "takeover": content["takeover"] | {"stop": KILL_THE_CALLER}}
    config.write_text(json.dumps(content))
    environment = {**sites.environment("west"), "ZEROTAIL_CONFIG": str(config)}
    sites.kill("east")  # a producer at work would end a drain that nobody holds any more
    plan = call("failback", "plan", "--json", environment=environment).answer("failback-plan")
    killed = call("failback", "run", "--plan", plan["id"], "--confirm", "west", environment=environment)
    assert killed.code == -signal.SIGKILL
    draining = (FIRST, "draining", "gated")
    assert sites.standing("east") == draining
    assert call("failback", "status", environment=environment).code == 1
    assert refused(sites.call("takeover", "run", "--to", "west", "--json")) == (3, "ZT450")
    assert refused(sites.call("takeover", "run", "--to", "west", *UNFENCED, "--json")) == (3, "ZT452")
    assert sites.standing("east") == draining
    assert sites.call("handover", "status", at="east").code == 1, "nobody has noted a handover, and east drains"
    back = sites.call("takeover", "plan", "--to", "east", "--json", at="east").answer("takeover-plan")["id"]
    reopen = ("takeover", "run", "--to", "east", "--plan", back, "--confirm", "east", "--json")
    with Notebook(sites.state).locked():
        assert refused(sites.call(*reopen, at="east")) == (3, "ZT455")
    assert sites.standing("east") == draining
    assert sites.call(*reopen, at="east").code == 0
    sites.start("east")
    require_untouched(sites)


def test_a_copy_that_may_lack_what_was_sent_is_refused_with_numbers(sites: Sites) -> None:
    assert kill_target(sites.lab, "west.postgres").bit
    report = sites.act("takeover", "--to", "east", "--accept-lost-site", "west", confirm="east", at="east")
    assert report["steps"][0]["step"] == "stop waiting"
    sites.insert("east", 5)
    sites.wait_until_all_arrived("east")
    with session(sites.dsn("east"), patience()) as east:
        opened, operator = one_row(east, "select opened_at, operator from zerotail.epoch where epoch = %s", (ALONE,))
        heads = east.execute("select partition, next_position, numbers from zerotail.head order by 1").fetchall()
    assert operator.endswith(", --accept-lost-site west")
    assert start_target(sites.lab, "west.postgres").bit
    wait_until("west has all of it", lambda: held_at_west(sites) == heads, patience())
    sites.kill("east")
    assert kill_target(sites.lab, "east").bit

    said = sites.call("takeover", "plan", "--to", "west", "--json")
    assert refused(said) == (3, "ZT430")
    error = said.answer("error")
    places = ", ".join(f"partition {partition} up to position {following - 1}" for partition, following, _ in heads)
    sent = ", ".join(f"partition {partition} up to number {numbers[0][2]}" for partition, _, numbers in heads)
    why = error["why"].splitlines()
    assert f"stage {sites.system.stage}: {places}" in why
    assert f"channel {sites.system.bank}: {sent}" in why
    assert f"the epoch, exposed since {opened:%Y-%m-%d %H:%M:%S} UTC" in why
    assert any(line.startswith("the log up to 0/") for line in why)
    assert any(line.startswith("zerotail takeover plan --to west --accept-loss") for line in error["tries"])
    assert sites.standing("west") == (ALONE, "live", "exposed")


def test_a_promoted_copy_is_refused_as_well_whatever_was_stated_for_an_earlier_takeover(sites: Sites) -> None:
    promote(sites.dsn("west"), patience())
    notebook = Notebook(sites.state)
    accepted = ("--accept-loss",)
    old = Note("takeover", SiteName("west"), SiteName("east"), "old", "somebody", accepted, now(), finished_at=now())
    with notebook.locked():
        notebook.write(old)
    for words in (("resume",), ("resume", "--to", "west"), ("plan", "--to", "west")):
        assert refused(sites.call("takeover", *words, "--json")) == (3, "ZT430")
    assert sites.standing("west") == (ALONE, "live", "exposed")
    report = sites.act("takeover", "--to", "west", "--accept-loss", confirm="west")
    assert report["accepted"] == ["--accept-loss"]
    assert sites.standing("west") == (WITH_LOSS, "live", "exposed")
    with session(sites.dsn("west"), patience()) as west:
        (operator,) = one_row(west, "select operator from zerotail.epoch where epoch = %s", (WITH_LOSS,))
    assert operator.endswith(", --accept-loss")
    again = ("--to", "west", "--accept-loss", "--plan", report["plan"], "--confirm", "west", "--json")
    said = sites.call("takeover", "run", *again)
    assert (said.code, said.answer("takeover-report")["changed"]) == (0, False)


def held_at_west(sites: Sites) -> list[tuple[object, ...]]:
    with session(sites.dsn("west"), patience()) as west:
        return west.execute("select partition, next_position, numbers from zerotail.head order by 1").fetchall()


def require_untouched(sites: Sites) -> None:
    def as_before() -> bool:
        return [sites.standing(site) for site in ("east", "west")] == [(FIRST, "live", "gated")] * 2

    wait_until("both sites are as before", as_before, patience())


def patience() -> Deadline:
    return Deadline.after(PATIENCE_SECONDS)
