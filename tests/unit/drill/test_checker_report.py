"""A verdict on the screen and in JSON, and the page of rules beside the code."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import get_args

import pytest

from histories import clean
from planted import PLANTED, each, put
from planted.senders import older_sender_comes_through
from zerotail.core.verdict import Doubt, Outcome, Verdict, Violation
from zerotail.drill.checker import check
from zerotail.drill.checker.names import RULE_NAMES
from zerotail.drill.checker.story import tell
from zerotail.drill.history import AnyEvent, EmissionAttempted, StateReached
from zerotail.drill.report import verdict_as_json, verdict_as_text

pytestmark = pytest.mark.fast

PAGE = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()


def failed_verdict() -> Verdict:
    events, expect = clean(5)
    attempt = next(a for a in each(events, EmissionAttempted) if a.answer == "accepted" and a.channel != "bank-R3")
    return check(put(events, attempt, attempt, attempt), expect)


def test_the_text_begins_with_the_outcome_and_tells_the_story_of_a_violation() -> None:
    text = verdict_as_text(failed_verdict())
    assert text.startswith("FAILED: a rule is broken\n")
    assert "S3 no duplicate: emission " in text
    assert "[receiver.jsonl, line " in text
    assert text.count(": accepted\n") == 2


def test_a_passed_verdict_says_what_was_seen() -> None:
    text = verdict_as_text(check(*clean(5)))
    assert text.startswith("PASSED: ")
    assert "Seen: " in text
    assert " accepted emissions" in text


def test_an_undecided_verdict_says_that_it_is_not_a_pass_and_why() -> None:
    text = verdict_as_text(Verdict(doubts=(Doubt("N2", "fault f1 (kill -9 east) did not bite"),)))
    assert text.startswith("UNDECIDED: ")
    assert "not a pass" in text
    assert "N2 faults bit: fault f1 (kill -9 east) did not bite" in text


def test_any_verdict_fits_on_one_screen() -> None:
    for seed in range(40):
        events, expect = clean(seed)
        rng = random.Random(seed)
        verdict = check(rng.sample(events, len(events) // 2), expect)
        assert verdict.outcome is not Outcome.PASSED
        assert len(verdict_as_text(verdict).splitlines()) <= 60


def test_the_rest_of_many_violations_is_named() -> None:
    many = Verdict(violations=tuple(Violation(f"S{n}", "broken", ()) for n in range(1, 10)))
    assert "also broken: S7, S8, S9\n" in verdict_as_text(many)
    more = Verdict(doubts=tuple(Doubt("N2", f"fault f{n} did not bite") for n in range(30)))
    assert "also open: 20 more\n" in verdict_as_text(more)


@pytest.mark.parametrize("verdict", [failed_verdict(), check(*clean(5)), check([])])
def test_the_json_form_holds_all_of_it(verdict: Verdict) -> None:
    plain = json.loads(json.dumps(verdict_as_json(verdict)))
    assert plain["schema"] == "zerotail/verdict/1"
    assert plain["outcome"] == verdict.outcome.value
    assert [v["rule"] for v in plain["violations"]] == list(verdict.broken_rules)
    assert [len(v["witness"]) for v in plain["violations"]] == [len(v.witness) for v in verdict.violations]
    assert len(plain["doubts"]) == len(verdict.doubts)
    assert plain["counted"] == verdict.counted


def test_every_kind_of_event_has_a_line_of_its_own() -> None:
    lines = {type(event): tell(event) for seed in range(60) for event in clean(seed)[0]}
    lines[StateReached] = tell(StateReached(state="read back found the row"))
    assert set(lines) == set(get_args(AnyEvent))
    assert len({line for line in lines.values() if line}) == len(lines)


def test_the_page_of_rules_has_every_rule_under_its_name() -> None:
    told = dict(re.findall(r"^\| \*\*([SLN]\d+)\*\* ([^|]+?) \|", PAGE, flags=re.MULTILINE))
    assert told == RULE_NAMES


def test_the_screen_on_the_page_is_a_real_one() -> None:
    events, expect = clean(393)
    broken = older_sender_comes_through(random.Random(393), events)
    assert broken is not None
    assert f"```\n{verdict_as_text(check(broken, expect))}```\n" in PAGE


def test_every_event_that_the_page_names_exists() -> None:
    kinds = {kind.__name__ for kind in get_args(AnyEvent)}
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z][A-Za-z]+)`", PAGE))
    assert named
    assert named <= kinds


def test_every_rule_on_the_page_has_a_planted_violation_or_a_test_of_its_own() -> None:
    tested_alone = {"N1", "N6"}
    assert {planted.rule for planted in PLANTED} | tested_alone == set(RULE_NAMES)
