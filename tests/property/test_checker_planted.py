"""Whatever rule is broken in a history, the checker names that rule, and no rule that still holds."""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache

import pytest

from histories import clean
from planted import PLANTED, Events, Planted
from zerotail.core.verdict import Outcome
from zerotail.drill.checker import Expect, check
from zerotail.drill.report import verdict_as_text

pytestmark = pytest.mark.fast

SAFETY = [f"S{number}" for number in range(1, 20)]
PLACES_PER_KIND = 12
MOST_SEEDS = 2_000


@lru_cache(maxsize=MOST_SEEDS)
def clean_history(seed: int) -> tuple[Events, Expect]:
    return clean(seed)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_violation_is_named(planted: Planted) -> None:
    places = 0
    for seed in range(MOST_SEEDS):
        events, expect = clean_history(seed)
        broken = planted.plant(random.Random(seed), events)
        if broken is None:
            continue
        places += 1
        verdict = check(broken, expect)
        told = f"seed {seed}\n{verdict_as_text(verdict)}"
        if planted.rule.startswith("N"):
            assert verdict.outcome is Outcome.UNDECIDED, told
            assert planted.rule in verdict.open_rules, told
        else:
            assert verdict.outcome is Outcome.FAILED, told
            assert planted.rule in verdict.broken_rules, told
            assert set(verdict.broken_rules) <= {planted.rule, *planted.also}, told
        if places == PLACES_PER_KIND:
            return
    pytest.fail(f"only {places} places for this kind of violation")


def test_every_safety_rule_is_broken_in_several_ways_and_at_many_places() -> None:
    kinds = Counter(planted.rule for planted in PLANTED)
    for rule in SAFETY:
        assert kinds[rule] >= 2, rule
        assert kinds[rule] * PLACES_PER_KIND >= 20, rule
    assert {f"L{number}" for number in range(1, 8)} <= set(kinds)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_witness_is_never_more_than_two_events(planted: Planted) -> None:
    for seed in range(MOST_SEEDS):
        events, expect = clean_history(seed)
        broken = planted.plant(random.Random(seed), events)
        if broken is not None:
            for violation in check(broken, expect).violations:
                assert 1 <= len(violation.witness) <= 2, violation
            return
    pytest.fail("no place for this kind of violation")
