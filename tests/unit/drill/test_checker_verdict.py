"""The verdict as a whole: three values, what wins, what a witness says, and what the checker may know."""

from __future__ import annotations

import ast
import random
from dataclasses import replace as changed
from pathlib import Path

import pytest
from msgspec.structs import replace

import zerotail.drill.checker
from histories import clean
from planted import each, put
from planted.clients import submission_came_after_a_later_serial_was_acknowledged
from zerotail.core.identity import Serial
from zerotail.core.verdict import Doubt, Outcome, Verdict, Violation
from zerotail.drill.checker import SIMULATED, Expect, check
from zerotail.drill.history import (
    AnyEvent,
    ChannelClaimed,
    ChannelDeclared,
    DivergentSegment,
    EmissionAttempted,
    EpochOpened,
    FaultBegan,
    FaultEnded,
    FinalSegment,
    FinalSite,
    Released,
    StageDeclared,
    StateReached,
    SubmitAccepted,
    SubmitInvoked,
    SubmitUnknown,
)
from zerotail.drill.recording import History

pytestmark = pytest.mark.fast

BROKEN = Violation(rule="S1", says="lost", witness=())
OPEN = Doubt(rule="N2", says="no fault")


def test_a_verdict_has_three_values_and_failed_wins() -> None:
    assert Verdict().outcome is Outcome.PASSED
    assert Verdict(doubts=(OPEN,)).outcome is Outcome.UNDECIDED
    assert Verdict(violations=(BROKEN,)).outcome is Outcome.FAILED
    assert Verdict(violations=(BROKEN,), doubts=(OPEN,)).outcome is Outcome.FAILED


def test_rules_are_listed_in_their_order_and_reasons_once() -> None:
    verdict = Verdict(violations=(BROKEN,), doubts=(OPEN, OPEN))
    assert verdict.broken_rules == ("S1",)
    assert verdict.open_rules == ("N2",)


def test_violations_come_in_the_order_of_the_rule_list() -> None:
    events, expect = clean(5)
    site = next(site for site in each(events, FinalSite) if site.role == "active")
    bare = [event for event in events if type(event) not in (EmissionAttempted, SubmitAccepted)]
    journal = [event for event in bare if not (type(event) is FinalSegment and event.site == site.site)]
    rules = check(journal, expect).broken_rules
    numbers = [int(rule[1:]) for rule in rules if rule[0] == "S"]
    assert len(numbers) > 1
    assert numbers == sorted(numbers)


def test_a_witness_names_file_and_line_and_tells_what_happened() -> None:
    events, expect = clean(5)
    attempt = next(a for a in each(events, EmissionAttempted) if a.answer == "accepted" and a.channel != "bank-R3")
    verdict = check(put(events, attempt, attempt, attempt), expect)
    assert verdict.broken_rules == ("S3",)
    (violation,) = verdict.violations
    assert violation.count == 1
    assert violation.says.endswith("was accepted twice")
    assert {(w.recorder, w.sequence, w.time) for w in violation.witness} == {
        ("receiver", attempt.sequence, attempt.time)
    }
    assert f"sends {attempt.channel} number {attempt.number}" in violation.witness[0].says
    assert violation.witness[0].says.endswith("accepted")


def test_the_same_violation_many_times_is_one_entry_with_a_count() -> None:
    events, expect = clean(5)
    told = {answer.id for answer in each(events, SubmitAccepted)}
    wrong = [replace(e, serial=Serial(900)) if type(e) is SubmitAccepted else e for e in events]
    (violation,) = check(wrong, expect).violations
    assert (violation.rule, violation.count) == ("S14", len(told))
    assert violation.witness[0].sequence == each(events, SubmitAccepted)[0].sequence


def test_judging_changes_nothing_and_gives_the_same_twice() -> None:
    events, expect = clean(9)
    before = list(events)
    assert check(events, expect) == check(events, expect)
    assert events == before


def test_a_serial_that_is_told_late_still_counts() -> None:
    events, expect = clean(5)
    answer = next(a for a in each(events, SubmitAccepted) if a.serial)
    assert answer.serial is not None
    first = replace(answer, serial=None)
    assert check(put(events, answer, first, answer), expect).outcome is Outcome.PASSED
    lie = replace(answer, serial=Serial(answer.serial + 1))
    assert check(put(events, answer, first, lie), expect).broken_rules == ("S14",)


def test_serials_that_the_business_gives_need_not_follow_the_clock() -> None:
    bitten = 0
    for seed in range(100):
        events, expect = clean(seed)
        late = submission_came_after_a_later_serial_was_acknowledged(random.Random(seed), events)
        if late is None:
            continue
        bitten += 1
        given = [replace(event, serial=Serial(1)) if type(event) is SubmitInvoked else event for event in late]
        assert check(late, expect).broken_rules == ("S19",)
        assert check(given, expect).broken_rules == ()
    assert bitten, "no history had such a submission"


def test_an_ended_lineage_that_emitted_the_same_is_harmless() -> None:
    events, expect = clean(5)
    segment = next(s for s in each(events, FinalSegment) if s.emissions)
    divergent = DivergentSegment(
        site=segment.site,
        stage=segment.stage,
        partition=segment.partition,
        segment=segment.segment,
        epoch=segment.epoch,
        chain="ab",
        found="audit",
        emissions=segment.emissions,
    )
    assert check([*events, divergent], expect).outcome is Outcome.PASSED


def test_the_bytes_under_the_chain_can_be_defined_by_the_journal() -> None:
    events, expect = clean(5)
    verdict = check(events, expect, content_of=lambda segment: segment.stage.encode())
    assert verdict.broken_rules == ("S10",)


# Could it have failed?


def test_without_a_final_journal_nothing_is_called_lost() -> None:
    events, expect = clean(5)
    cut_short = [event for event in events if type(event) not in (FinalSite, FinalSegment)]
    verdict = check(cut_short, expect)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "N5" in verdict.open_rules


@pytest.mark.parametrize(
    ("lacking", "rule"),
    [
        (Expect(faults=99), "N2"),
        (Expect(faults=0, states=("zombie alive at takeover",)), "N4"),
        (Expect(faults=0, limits=("L4",)), "N7"),
    ],
)
def test_what_was_promised_and_not_shown_leaves_the_verdict_open(lacking: Expect, rule: str) -> None:
    events, _ = clean(5)
    verdict = check(events, changed(lacking, work_around_faults=False, fenced_process_limit=5, work=False))
    assert rule in verdict.open_rules
    assert verdict.outcome is Outcome.UNDECIDED


def test_a_state_that_the_run_marks_itself_counts_as_reached() -> None:
    events, expect = clean(5)
    wanted = changed(expect, states=("zombie alive at takeover",))
    assert check(events, wanted).open_rules == ("N4",)
    assert check([*events, StateReached(state="zombie alive at takeover")], wanted).outcome is Outcome.PASSED


def test_a_fault_without_work_during_it_leaves_the_verdict_open() -> None:
    events, expect = clean(5)
    fault = next(f for f in each(events, FaultBegan))
    strict = changed(expect, work_during_faults=True)
    quiet = [e for e in events if type(e) not in (EmissionAttempted, SubmitAccepted) or e.time < fault.time]
    assert "N3" in check(quiet, strict).open_rules
    assert check(events, strict).outcome is Outcome.PASSED


@pytest.mark.parametrize(("heard", "left_open"), [(None, True), (EmissionAttempted, False), (SubmitInvoked, False)])
def test_what_is_asked_or_sent_during_a_fault_that_stops_all_work_counts_as_attempted(
    heard: type | None, left_open: bool
) -> None:
    events, expect = clean(5)
    fault = next(f for f in each(events, FaultBegan))
    work = next(e for e in events if type(e) is (heard or EmissionAttempted) and e.time > fault.time)
    quiet = [e for e in events if e.time != work.time or (e is work and heard)]
    during: list[AnyEvent] = [
        replace(fault, fault="short", time=work.time - 1, sequence=0),
        FaultEnded(fault="short", time=work.time + 1),
    ]
    verdict = check(sorted([*quiet, *during], key=lambda e: e.time), changed(expect, work_during_faults=False))
    assert ("nothing was attempted during fault short" in [doubt.says for doubt in verdict.doubts]) is left_open


def test_work_before_a_fault_counts_only_when_it_was_completed() -> None:
    events, expect = clean(5)
    fault = next(f for f in each(events, FaultBegan))
    only_asked = [e for e in events if type(e) not in (EmissionAttempted, SubmitAccepted) or e.time > fault.time]
    assert "N3" in check(only_asked, expect).open_rules


def test_the_states_that_were_reached_are_counted_as_they_happened() -> None:
    for seed in range(30):
        events, expect = clean(seed)
        counted = check(events, expect).counted
        releases, opened = each(events, Released), each(events, EpochOpened)
        assert counted.get("exposed release", 0) == sum(r.by == "exposure" for r in releases)
        assert counted.get("takeover", 0) == sum(o.cause == "takeover" for o in opened)
        assert counted.get("unknown outcome", 0) == len(each(events, SubmitUnknown))
        assert counted["faults"] == len(each(events, FaultBegan))
        refused = sum(c.answer == "older-epoch" for c in each(events, ChannelClaimed))
        refused += sum(a.answer == "older-epoch" for a in each(events, EmissionAttempted))
        assert counted.get("refused by fence", 0) == refused


def test_an_idle_channel_and_idle_clients_leave_the_verdict_open() -> None:
    events, expect = clean(5)
    idle = ChannelDeclared(channel="idle", stage="settle", receiver="R1")  # type: ignore[arg-type]
    working = changed(expect, work=True)
    assert "N6" in check([*events, idle], working).open_rules
    assert "N6" not in check(events, working).open_rules
    assert "N6" in check([], working).open_rules


def test_an_undeclared_channel_or_stage_leaves_the_verdict_open() -> None:
    events, expect = clean(5)
    for kind in (ChannelDeclared, StageDeclared):
        undeclared = [event for event in events if type(event) is not kind]
        assert "N5" in check(undeclared, expect).open_rules


def test_a_missing_standby_leaves_the_verdict_open_where_one_is_expected() -> None:
    events, expect = clean(5)
    alone = [e for e in events if not (type(e) is FinalSite and e.role == "standby")]
    assert "N5" in check(alone, changed(expect, standby=True)).open_rules


def test_a_simulated_run_needs_neither_faults_nor_a_standby() -> None:
    events, _ = clean(5)
    site = next(site.site for site in each(events, FinalSite) if site.role == "active")
    bare = [
        event
        for event in events
        if (type(event) is not FaultBegan and getattr(event, "site", site) == site) or type(event) is EpochOpened
    ]
    assert "N2" not in check(bare, SIMULATED).open_rules
    assert check(events, SIMULATED).outcome is Outcome.PASSED


def test_damage_to_the_record_is_told_beside_what_it_proves() -> None:
    events, expect = clean(5)
    verdict = check(History(events=events, damaged=("client.jsonl: line 3 cannot be read",)), expect)
    assert verdict.open_rules == ("N1",)


# Robustness and independence.


def test_a_history_cut_anywhere_or_with_holes_anywhere_is_judged_without_an_error() -> None:
    for seed in range(40):
        events, expect = clean(seed)
        rng = random.Random(seed)
        check(events[: rng.randrange(len(events))], expect)
        check([event for event in events if rng.random() < 0.7], expect)
        check(rng.sample(events, len(events)), expect)


def test_the_checker_shares_only_value_types_with_the_rest() -> None:
    package = Path(zerotail.drill.checker.__file__).parent
    modules = [*package.glob("*.py"), *(package.parent / name for name in ("history.py", "recording.py"))]
    imported = {
        node.module
        for path in modules
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("zerotail")
    }
    outside = {name for name in imported if not name.startswith("zerotail.drill")}
    assert outside == {"zerotail.core.identity", "zerotail.core.verdict", "zerotail.garbage", "zerotail.private"}
