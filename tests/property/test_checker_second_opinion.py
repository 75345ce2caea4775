"""Two judges that share nothing but the page of rules agree on what is broken."""

from __future__ import annotations

import random
from copy import copy

import pytest

import second_opinion
from histories import clean
from planted import PLANTED, Events, Planted
from zerotail.drill.checker import check

pytestmark = pytest.mark.fast

PLACES_PER_KIND = 4


def agree(events: Events, told: str) -> None:
    first = set(check(events).broken_rules) & second_opinion.JUDGED
    assert first == second_opinion.broken_rules(events), told


def test_both_judges_pass_clean_histories() -> None:
    for seed in range(60):
        events, _ = clean(seed)
        assert second_opinion.broken_rules(events) == set(), f"seed {seed}"


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_both_judges_agree_on_planted_violations(planted: Planted) -> None:
    places = 0
    for seed in range(2_000, 3_000):
        events, _ = clean(seed)
        broken = planted.plant(random.Random(seed), events)
        if broken is not None:
            agree(broken, f"seed {seed}")
            places += 1
        if places == PLACES_PER_KIND:
            return
    pytest.fail(f"only {places} places for this kind of violation")


def test_both_judges_agree_on_histories_with_events_missing_or_doubled() -> None:
    for seed in range(3_000, 3_300):
        events, _ = clean(seed)
        rng = random.Random(seed)
        for _ in range(rng.randint(1, 4)):
            index = rng.randrange(len(events))
            events[index : index + 1] = [] if rng.random() < 0.7 else [events[index], copy(events[index])]
        agree(events, f"seed {seed}")
