"""Plans of acts: the id stands for everything that matters, and nobody passes without having seen it."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass, replace

import click
import pytest

from zerotail.cli.act_options import confirmed, plan_lines
from zerotail.core.identity import Epoch, SiteName
from zerotail.errors import Refused
from zerotail.operate.plan import ActPlan, Limit, make_plan, plan_line, require_accepted, require_same, run_line

pytestmark = pytest.mark.fast

EAST, WEST = SiteName("east"), SiteName("west")


def plan(act: str = "takeover", **changes: tuple[str, ...]) -> ActPlan:
    known: dict[str, tuple[str, ...]] = {"seen": ("east is silent",), "steps": ("promote",), "needs": ()}
    known |= changes
    return make_plan(act, WEST, EAST, Epoch(513), seen=known["seen"], steps=known["steps"], needs=known["needs"])


def test_the_same_world_gives_the_same_id_and_another_world_another() -> None:
    changed = [plan(seen=("east answers",)), plan(steps=("fence", "promote")), plan(needs=("--accept-loss",))]
    assert plan().id == plan().id
    assert len({one.id for one in [plan(), plan("handover"), *changed]}) == 5


def test_a_plan_of_another_world_is_refused_with_what_is_seen_now() -> None:
    require_same(plan(), plan().id)
    with pytest.raises(Refused) as refused:
        require_same(plan(), "0123456789")
    assert refused.value.code == "ZT451"
    assert "east is silent" in refused.value.why


def test_each_statement_that_is_needed_must_be_made() -> None:
    needed = plan(needs=("--accept-unfenced-site east", "--accept-loss"))
    require_accepted(needed, ("--accept-loss", "--accept-unfenced-site east"))
    with pytest.raises(Refused, match="may lack what was sent") as refused:
        require_accepted(needed, ("--accept-unfenced-site east",))
    assert refused.value.code == "ZT450"
    assert refused.value.tries == (run_line(needed),)
    with pytest.raises(Refused, match="east is live") as refused:
        require_accepted(needed, ("--accept-loss", "--accept-unfenced-site west"))
    assert refused.value.tries[0].startswith("zerotail handover plan --to west")


@pytest.mark.parametrize(
    ("act", "line"),
    [
        ("takeover", "zerotail takeover plan --to west"),
        ("handover", "zerotail handover plan --to west"),
        ("failback", "zerotail failback plan"),
        ("rejoin", "zerotail rejoin plan --site west"),
    ],
)
def test_a_plan_names_the_lines_to_type(act: str, line: str) -> None:
    one = plan(act, needs=("--accept-loss",))
    assert plan_line(one) == (f"{line} --accept-loss" if act == "takeover" else line)
    assert run_line(one) == f"{line.replace(' plan', ' run')} --plan {one.id} --confirm west --accept-loss"


class Terminal(io.StringIO):
    """A stream that somebody sits at."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Planned:
    shown: ActPlan


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Somebody sits there and types the names of both sites, one after the other."""
    shown, typed = Terminal(), iter(["west", "east"])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(click, "prompt", lambda *_words, **_more: next(typed))
    return shown


def test_on_a_terminal_the_name_of_the_site_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    confirmed(lambda: Planned(plan()), (), None, None)
    assert f"takeover: plan {plan().id}" in shown.getvalue()
    with pytest.raises(Refused) as refused:
        confirmed(lambda: Planned(plan()), (), None, None)
    assert refused.value.code == "ZT453"


def test_what_changed_while_nobody_typed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    seen = iter([plan(), plan(seen=("east answers",), needs=("--accept-unfenced-site east",))])
    with pytest.raises(Refused) as refused:
        confirmed(lambda: Planned(next(seen)), (), None, None)
    assert refused.value.code == "ZT451"
    assert "east answers" in refused.value.why


def test_who_gives_the_name_beforehand_is_not_asked_and_looks_once() -> None:
    once = iter([plan()])
    assert confirmed(lambda: Planned(next(once)), (), plan().id, "west") == Planned(plan())


def test_a_finished_plan_says_that_nothing_is_to_be_done() -> None:
    assert plan(steps=()).done
    assert not replace(plan(), steps=("x",)).done


def test_a_plan_for_people_names_its_deadline_and_what_is_so_long_of_it() -> None:
    limits = (Limit("promote", 61.0), Limit("copy the database", 43200.0))
    made = make_plan("rejoin", WEST, EAST, Epoch(513), seen=(), steps=("copy",), limits=limits)
    assert plan_lines(made)[-1] == (
        "  deadline: it ends within 12 h 2 min, done or not, most of it for: copy the database; "
        "then zerotail rejoin plan --site west goes on"
    )
