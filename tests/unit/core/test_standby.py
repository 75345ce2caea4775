"""How a standby goes by, and whether those that commits wait for are there."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.config.scalar import LONGEST_NAME, NAME_PATTERN
from zerotail.core.standby import (
    Commits,
    Follower,
    Waiting,
    is_named,
    read_waiting,
    slot_of,
    wanted,
    why_commits_are_unsafe,
    why_commits_hang,
    written,
)

pytestmark = pytest.mark.fast

names = st.from_regex(NAME_PATTERN, fullmatch=True).map(lambda name: name[:LONGEST_NAME])


@given(names | st.text(min_size=1))
def test_what_is_written_is_read_as_the_same_name(name: str) -> None:
    assert read_waiting(written(name)) == Waiting(1, (name,))


@given(names)
def test_a_slot_takes_the_name(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9_]{1,63}", slot_of(name))


def test_names_that_are_plain_stay_as_they_are() -> None:
    assert (written("west"), slot_of("west")) == ("FIRST 1 (west)", "west")


@pytest.mark.parametrize(
    ("setting", "waiting"),
    [
        ("", None),
        ("  ", None),
        ("west", Waiting(1, ("west",))),
        ("*", Waiting(1, ("*",))),
        ("2 (a, b, c)", Waiting(2, ("a", "b", "c"))),
        ("first 2(a,b)", Waiting(2, ("a", "b"))),
        ('ANY 1 ( "a ""b""" , c )', Waiting(1, ('a "b"', "c"))),
        ('"FIRST 3 (x)", y', Waiting(1, ("FIRST 3 (x)", "y"))),
    ],
)
def test_every_form_of_the_setting_is_read(setting: str, waiting: Waiting | None) -> None:
    assert read_waiting(setting) == waiting


def test_as_many_as_are_asked_for_have_to_confirm() -> None:
    one, two = (Follower(name, "streaming", "quorum", 0) for name in ("a", "b"))
    assert why_commits_hang("ANY 2 (a, b)", [one, two]) is None
    assert why_commits_hang("ANY 2 (a, b)", [one]) is not None
    assert why_commits_hang("", []) is None


@pytest.mark.parametrize(
    ("setting", "followers", "safe"),
    [
        ("FIRST 1 (west, replica)", {"West": "sync", "replica": "potential"}, True),
        ("FIRST 1 (replica, west)", {"west": "potential", "replica": "sync"}, False),
        ("FIRST 2 (replica, west)", {"west": "sync", "replica": "sync"}, True),
        ("ANY 1 (replica, west)", {"west": "quorum", "replica": "quorum"}, False),
        ("ANY 1 (replica, west)", {"west": "quorum"}, True),
        ("ANY 2 (replica, west)", {"west": "quorum", "replica": "quorum"}, True),
        ("*", {"walreceiver": "sync"}, True),  # the only one who follows, whatever it is called
        ("*", {"walreceiver": "sync", "replica": "potential"}, False),
        ("lyon", {"west": "async"}, False),
        ("", {"west": "async"}, False),
    ],
)
def test_a_commit_is_safe_when_it_waits_for_the_other_site_and_returns(
    setting: str, followers: dict[str, str], safe: bool
) -> None:
    seen = tuple(Follower(name, "streaming", state, 0) for name, state in followers.items())
    unsafe = why_commits_are_unsafe(Commits(setting, seen), "east", "west")
    assert (unsafe is None) == safe


@pytest.mark.parametrize(
    ("level", "safe"), [("on", True), ("remote_apply", True), ("remote_write", False), ("off", False)]
)
def test_a_commit_that_returns_before_the_other_disk_has_it_is_not_safe(level: str, safe: bool) -> None:
    commits = Commits("FIRST 1 (west)", (Follower("west", "streaming", "sync", 0),), level)
    assert (why_commits_are_unsafe(commits, "east", "west") is None) == safe
    assert wanted("west", level).startswith("alter system set synchronous_commit = on;") != safe


def test_a_name_is_found_in_the_setting_whatever_its_capitals() -> None:
    assert is_named("FIRST 1 (DC_West)", "dc_west")
    assert is_named("*", "west")
    assert not is_named('"dc-west"', "west")
    assert not is_named("", "west")
