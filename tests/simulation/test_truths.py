"""What PostgreSQL really does while a commit waits for its standby; the gate is asked in every case."""

from __future__ import annotations

import pytest

from simulation.pair import Outcome, Pair, SimulatedPair

pytestmark = pytest.mark.fast


@pytest.fixture
def pair() -> Pair:
    return SimulatedPair()


def _waiting(pair: Pair) -> None:
    pair.freeze_standby()
    pair.begin_commit("row")
    assert pair.outcome("row") is Outcome.WAITS


def test_a_commit_waits_and_its_row_is_invisible_while_the_standby_is_frozen(pair: Pair) -> None:
    _waiting(pair)
    assert not pair.visible_on_primary("row")
    assert not pair.visible_on_standby("row")
    assert not pair.gate_open("row")


def test_a_commit_returns_when_the_standby_has_flushed_it(pair: Pair) -> None:
    pair.begin_commit("row")
    assert pair.outcome("row") is Outcome.SUCCESS
    assert pair.visible_on_primary("row")
    assert pair.visible_on_standby("row")
    assert pair.gate_open("row")


def test_a_cancelled_wait_shows_success_and_a_row_that_the_standby_lacks(pair: Pair) -> None:
    _waiting(pair)
    pair.cancel("row")
    assert pair.outcome("row") is Outcome.SUCCESS
    assert pair.visible_on_primary("row")
    assert not pair.visible_on_standby("row")
    assert not pair.gate_open("row")


def test_a_terminated_session_loses_its_connection_and_leaves_a_visible_row(pair: Pair) -> None:
    _waiting(pair)
    pair.terminate("row")
    assert pair.outcome("row") is Outcome.CONNECTION_LOST
    assert pair.visible_on_primary("row")
    assert not pair.visible_on_standby("row")
    assert not pair.gate_open("row")


def test_a_killed_client_leaves_the_wait_behind_until_the_standby_has_the_row(pair: Pair) -> None:
    _waiting(pair)
    pair.kill_client("row")
    assert not pair.visible_on_primary("row")
    pair.thaw_standby()
    assert pair.visible_on_primary("row")
    assert pair.visible_on_standby("row")
    assert pair.gate_open("row")


def test_emptied_standby_names_release_every_wait_with_success(pair: Pair) -> None:
    pair.freeze_standby()
    pair.begin_commit("one")
    pair.begin_commit("two")
    pair.empty_standby_names()
    pair.begin_commit("three")
    for row in ("one", "two", "three"):
        assert pair.outcome(row) is Outcome.SUCCESS
        assert pair.visible_on_primary(row)
        assert not pair.visible_on_standby(row)
        assert not pair.gate_open(row)


def test_a_restarted_primary_shows_rows_that_were_still_waiting(pair: Pair) -> None:
    _waiting(pair)
    pair.crash_and_restart_primary()
    assert pair.outcome("row") is Outcome.CONNECTION_LOST
    assert pair.visible_on_primary("row")
    assert not pair.visible_on_standby("row")
    assert not pair.gate_open("row")


def test_a_later_commit_at_the_standby_vouches_for_everything_before_it(pair: Pair) -> None:
    _waiting(pair)
    pair.cancel("row")
    pair.thaw_standby()
    pair.begin_commit("barrier")
    assert pair.outcome("barrier") is Outcome.SUCCESS
    assert pair.visible_on_standby("row")
    assert pair.gate_open("row")


def test_a_local_commit_returns_without_the_standby(pair: Pair) -> None:
    pair.freeze_standby()
    pair.commit_locally("row")
    assert pair.outcome("row") is Outcome.SUCCESS
    assert pair.visible_on_primary("row")
    assert not pair.gate_open("row")


def test_a_promoted_standby_keeps_what_it_had_and_confirms_nothing_more(pair: Pair) -> None:
    pair.begin_commit("before")
    assert pair.gate_open("before")
    pair.promote_standby()
    assert pair.visible_on_standby("before")
    assert not pair.gate_open("before")
    pair.begin_commit("after")
    assert pair.outcome("after") is Outcome.WAITS
    assert not pair.visible_on_standby("after")
    assert not pair.gate_open("after")
