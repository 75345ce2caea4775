"""The simulation finds what is planted: each named bug, by a rule that it really breaks."""

from __future__ import annotations

import pytest

from zerotail.simulation.bugs import BUGS, planted
from zerotail.simulation.campaign import campaign, find_bug

pytestmark = pytest.mark.fast

REAL = [name for name, bug in BUGS.items() if not bug.equivalent]
EQUIVALENT = [name for name, bug in BUGS.items() if bug.equivalent]


def test_there_are_enough_of_them() -> None:
    assert len(REAL) >= 40


@pytest.mark.parametrize("name", REAL)
def test_a_planted_bug_is_found(name: str) -> None:
    failure = find_bug(name, seconds=60)
    assert failure is not None, f"{name}: {BUGS[name].what} was not noticed"
    assert failure.rule in BUGS[name].rules


@pytest.mark.parametrize("name", EQUIVALENT)
def test_a_bug_that_another_rule_stands_behind_breaks_nothing(name: str) -> None:
    tally = campaign(0, runs=80, bug=name)
    assert not tally.failures, [(one.rule, one.violations[0].text) for one in tally.failures]


def test_a_bug_changes_what_it_names_and_nothing_of_it_is_left_behind() -> None:
    for name, bug in BUGS.items():
        named = [(where, attribute) for where, attribute, _ in bug.patches()]
        before = [getattr(*one) for one in named]
        assert named, name
        with planted(name):
            assert all(getattr(*one) is not was for one, was in zip(named, before, strict=True)), name
        assert all(getattr(*one) is was for one, was in zip(named, before, strict=True)), name
