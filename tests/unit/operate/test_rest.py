"""What is left of an interrupted takeover, by what its operator stated."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.config import Configuration
from zerotail.core.epoch import Durability, Phase
from zerotail.core.identity import Timeline
from zerotail.core.staleness import CopyAge
from zerotail.core.takeover import Step, Strategy
from zerotail.errors import Refused
from zerotail.operate.act import Operator
from zerotail.operate.notebook import Note, Notebook, now
from zerotail.operate.plan import plan_line, run_line
from zerotail.operate.takeover import Statements, plan_rest, plan_takeover, resume_takeover
from zerotail.operate.world import World

pytestmark = pytest.mark.fast


def note(*accepted: str) -> Note:
    return Note("takeover", EAST, WEST, "a plan", "somebody", accepted, now())


@pytest.mark.parametrize(
    "stated",
    [
        Statements(),
        Statements(WEST),
        Statements(None, WEST),
        Statements(None, None, True),
        Statements(WEST, None, True),
    ],
)
def test_what_was_stated_is_found_in_what_was_typed(stated: Statements) -> None:
    assert Statements.typed(stated.flags) == stated


def test_who_was_stated_to_be_out_still_is(configuration: Configuration) -> None:
    world = World({EAST: observed(standing()), WEST: None})
    rest = plan_rest(configuration, world, EAST, note("--accept-lost-site west"), Statements())
    assert rest.alone
    assert Step.OPEN_EPOCH in rest.steps.steps


@pytest.mark.parametrize("phase", [Phase.LIVE, Phase.DRAINING])
def test_a_site_that_works_or_hands_over_is_taken_over_by_a_statement_only(
    configuration: Configuration, phase: Phase
) -> None:
    standby = observed(standing(phase=phase, timeline=None))
    world = World({EAST: observed(standing(phase=phase)), WEST: standby})
    assert plan_takeover(configuration, world, WEST, Statements()).shown.needs == ("--accept-unfenced-site east",)


def test_unless_it_answers_again(configuration: Configuration) -> None:
    standby = observed(standing(timeline=None))
    flag = note("--accept-lost-site west")
    rest = plan_rest(configuration, World({EAST: observed(standing()), WEST: standby}), EAST, flag, Statements())
    assert (rest.alone, rest.steps.done) == (False, True), "nothing had begun that would have to be finished"
    begun = observed(standing(2, phase=Phase.OPENED, durability=Durability.EXPOSED, cause="exposure"))
    rest = plan_rest(configuration, World({EAST: begun, WEST: standby}), EAST, flag, Statements())
    assert rest.steps.steps == (Step.HANDSHAKE, Step.GO_LIVE)


def test_what_was_stated_for_a_takeover_that_is_finished_is_not_stated_again(configuration: Configuration) -> None:
    promoted = observed(standing(durability=Durability.EXPOSED, timeline=Timeline(2)))
    world = World({EAST: None, WEST: promoted})
    begun = msgspec.structs.replace(note("--accept-loss"), site=WEST, other=EAST)
    assert plan_rest(configuration, world, WEST, begun, Statements()).shown.needs == ("--accept-loss",)
    for old in (msgspec.structs.replace(begun, finished_at=now()), None):
        with pytest.raises(Refused) as refused:
            plan_rest(configuration, world, WEST, old, Statements())
        assert refused.value.code == "ZT430"


def test_how_the_topics_are_filled_is_remembered_until_another_way_is_asked_for(configuration: Configuration) -> None:
    world = World({EAST: None, WEST: observed(standing(timeline=None))}, ages={WEST: CopyAge(1.0, 1.0, 9.0)})
    began = msgspec.structs.replace(note(), site=WEST, other=EAST, strategy=Strategy.BOUNDED, rebuild=True)
    rest = plan_rest(configuration, world, WEST, began, Statements())
    assert (rest.strategy, rest.rebuild) == (Strategy.BOUNDED, True)
    other = plan_rest(configuration, world, WEST, began, Statements(strategy=Strategy.SKIP))
    assert (other.strategy, other.rebuild) == (Strategy.SKIP, False)
    finished = msgspec.structs.replace(began, finished_at=now())
    rest = plan_rest(configuration, world, WEST, finished, Statements())
    assert (rest.strategy, rest.rebuild) == (Strategy.AUTO, False), "as the configuration says"


def test_the_id_of_a_plan_covers_how_the_topics_are_filled_and_the_line_to_type_says_it(
    configuration: Configuration,
) -> None:
    world = World({EAST: None, WEST: observed(standing(timeline=None))}, ages={WEST: CopyAge(1.0, 1.0, 9.0)})
    plans = [
        plan_takeover(configuration, world, WEST, Statements(strategy=strategy, rebuild=rebuild)).shown
        for strategy, rebuild in ((None, False), (Strategy.BOUNDED, False), (Strategy.BOUNDED, True))
    ]
    assert len({one.id for one in plans}) == 3
    typed = ["", " --strategy bounded", " --strategy bounded --rebuild-state"]
    for one, flags in zip(plans, typed, strict=True):
        assert plan_line(one) == f"zerotail takeover plan --to west{flags}"
        assert run_line(one) == f"zerotail takeover run --to west{flags} --plan {one.id} --confirm west"


def test_a_site_that_goes_on_alone_stops_waiting_first_and_the_plan_says_so(configuration: Configuration) -> None:
    world = World({EAST: observed(standing()), WEST: None})
    planned = plan_takeover(configuration, world, EAST, Statements(lost_site=WEST))
    assert planned.shown.steps[0] == (
        "stop waiting: commits of east return without west (synchronous_standby_names is emptied)"
    )
    assert planned.steps.steps == (Step.STOP_WAITING, Step.OPEN_EPOCH, Step.HANDSHAKE, Step.GO_LIVE)
    assert plan_line(planned.shown) == "zerotail takeover plan --to east --accept-lost-site west"


def test_a_standby_is_not_promoted_by_resume_while_the_other_site_is_live_again(
    configuration: Configuration, tmp_path: Path
) -> None:
    world = World({EAST: observed(standing()), WEST: observed(standing(timeline=None))})
    notebook = Notebook(tmp_path / "notes")
    with notebook.locked():
        notebook.write(msgspec.structs.replace(note(), site=WEST, other=EAST))
    planned = plan_rest(configuration, world, WEST, notebook.find_last(("takeover",)), Statements())
    with pytest.raises(Refused) as refused:
        resume_takeover(Operator(configuration, notebook, "somebody"), planned)
    assert refused.value.code == "ZT450"
