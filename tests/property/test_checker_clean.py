"""Histories that keep every rule pass: whatever rightly happens in a run is no alarm."""

from __future__ import annotations

from collections import Counter

import pytest

from histories import clean
from support.seeds import seed_of
from zerotail.core.verdict import Outcome
from zerotail.drill.checker import check
from zerotail.drill.report import verdict_as_text

SEED = seed_of("histories")


def judge(first_seed: int, count: int) -> Counter[str]:
    """Judge clean histories; returns how many of them reached each rare state."""
    reached: Counter[str] = Counter()
    for seed in range(first_seed, first_seed + count):
        events, expect = clean(seed)
        verdict = check(events, expect)
        assert verdict.outcome is Outcome.PASSED, f"seed {seed}\n{verdict_as_text(verdict)}"
        reached.update(verdict.counted.keys())
    return reached


@pytest.mark.fast
def test_clean_histories_raise_no_alarm_and_hold_every_rare_state() -> None:
    reached = judge(SEED, 1_000)
    for state in (
        "unknown outcome",
        "repeat",
        "refused by gap",
        "refused by fence",
        "takeover",
        "handover",
        "failback",
        "exposed release",
        "doubt",
        "divergent tail",
        "skipped record",
        "handed over between stages",
    ):
        assert reached[state] >= 20, f"only {reached[state]} of 1,000 histories reached “{state}”"


@pytest.mark.nightly
def test_ten_thousand_more_clean_histories_raise_no_alarm() -> None:
    judge(SEED + 1_000, 10_000)
