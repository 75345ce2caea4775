"""A standby that can never catch up is no standby: a handover to it is refused, a rejoin replaces it."""

from __future__ import annotations

import pytest

from support.arena import Arena
from support.command import Said, call
from support.pair import gate_is_open
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.database import dsn
from zerotail.lab.example import CONFIGURATION
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import one_row, session
from zerotail.postgres.position import read_position

pytestmark = pytest.mark.nightly

_DROP = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = 'west' and not active"


@pytest.fixture
def broken(arena: Arena) -> Layout:
    """West was away, and east no longer keeps the log that it needs."""
    layout = arena.renewed()
    assert kill_target(layout, "west.postgres").bit
    with session(dsn(layout.database("east")), Deadline.after(30)) as east:
        gone = "select not exists (select from pg_replication_slots where slot_name = 'west')"
        wait_until(
            "the slot is gone",
            lambda: east.execute(_DROP.encode()) and one_row(east, gone)[0],
            Deadline.after(30),
        )
    assert start_target(layout, "west.postgres").bit
    return layout


def ask(layout: Layout, *words: str) -> Said:
    config = layout.path / "east" / CONFIGURATION
    return call(*words, "--config", str(config), "--state", str(layout.path / "notes"), "--json")


def test_it_is_not_handed_over_to_and_comes_back_by_a_copy(broken: Layout) -> None:
    refused = ask(broken, "handover", "plan", "--to", "west")
    assert (refused.code, refused.answer("error")["code"]) == (3, "ZT435")
    assert (
        "west: standby, in epoch 256 of east, cannot follow: its replication slot west is missing or lost"
        in refused.out
    )
    planned = ask(broken, "rejoin", "plan", "--site", "west").answer("rejoin-plan")
    (copied,) = [step for step in planned["steps"] if step.startswith("copy the database")]
    line = "zerotail takeover plan --to east --accept-lost-site west"
    assert copied.endswith(f"nothing leaves east until that is done, unless it goes on alone first: {line}")

    # A copy may take hours: east goes on meanwhile, though the standby that is none answers.
    alone = ask(broken, *line.split()[1:]).answer("takeover-plan")
    words = ("--plan", alone["id"], "--confirm", "east", *alone["needs"][0].split())
    assert ask(broken, "takeover", "run", "--to", "east", *words).code == 0
    planned = ask(broken, "rejoin", "plan", "--site", "west").answer("rejoin-plan")
    assert "unless it goes on alone" not in "".join(planned["steps"])
    ran = ask(broken, "rejoin", "run", "--site", "west", "--plan", planned["id"], "--confirm", "west")
    assert ran.code == 0, ran
    with session(dsn(broken.database("east")), Deadline.after(30)) as east:
        there = dsn(broken.database("west"), seen_from="east")
        position = read_position(east)
        wait_until(
            "it is confirmed", lambda: gate_is_open(east, there, position, Deadline.after(5)), Deadline.after(30)
        )
    assert ask(broken, "rejoin", "plan", "--site", "west").answer("rejoin-plan")["done"]
    assert ask(broken, "handover", "plan", "--to", "west").code == 0
