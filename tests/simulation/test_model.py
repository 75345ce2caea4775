"""Every interleaving of the small models: the protocol is safe, and each broken rule is found."""

from __future__ import annotations

import pytest

from simulation.model import OneHop, TwoHops

TWO = (("A", 1), ("B", 1))


@pytest.mark.fast
@pytest.mark.parametrize("receiver", ["R0", "R1", "R2"])
def test_the_protocol_is_safe_in_every_interleaving_of_two_instructions(receiver: str) -> None:
    explored = OneHop(receiver, instructions=TWO).explore()
    assert explored.wrong is None, explored.story
    assert explored.states > 10_000


@pytest.mark.nightly
@pytest.mark.parametrize("receiver", ["R1", "R2"])
def test_the_protocol_is_safe_in_every_interleaving_of_three_instructions(receiver: str) -> None:
    explored = OneHop(receiver).explore()
    assert explored.wrong is None, explored.story
    assert explored.states > 1_000_000


@pytest.mark.fast
def test_a_receiver_that_remembers_nothing_gets_twice_only_what_is_listed_as_doubtful() -> None:
    # Intents are entries of the log, so there are far more states: two instructions are enough for every crash point.
    explored = OneHop("R3", instructions=TWO).explore()
    assert explored.wrong is None, explored.story
    assert OneHop("R3", "doubts are not listed").explore().wrong == "a message twice"


@pytest.mark.fast
@pytest.mark.parametrize(
    ("bug", "receiver", "wrong"),
    [
        ("release before the commit", "R1", "two messages of one number"),
        ("release at the local commit", "R1", "two messages of one number"),
        ("a restart trusts the rows it sees", "R1", "two messages of one number"),
        ("the gate falls open when the link is cut", "R1", "two messages of one number"),
        ("replay without the recorded order", "R1", "two messages of one number"),
        ("no compare-and-set", "R1", "an instruction applied twice"),
        ("acknowledged before it was sent", "R1", "a message is missing"),
        ("an older epoch is accepted", "R2", "a message twice"),
    ],
)
def test_every_broken_rule_is_found(bug: str, receiver: str, wrong: str) -> None:
    explored = OneHop(receiver, bug).explore()
    assert explored.wrong == wrong, explored
    assert explored.story


@pytest.mark.fast
@pytest.mark.parametrize(
    ("write_after", "orphans_dropped", "wrong"),
    [
        ("gate", True, None),
        ("gate", False, None),
        ("local commit", True, None),
        ("local commit", False, "D has a message that C never sent"),
        ("nothing", True, "D has a message that C never sent"),
    ],
)
def test_two_hops_are_safe_behind_the_gate_and_otherwise_need_the_orphan_filter(
    write_after: str, orphans_dropped: bool, wrong: str | None
) -> None:
    explored = TwoHops(write_after, orphans_dropped).explore()
    assert explored.wrong == wrong, explored
