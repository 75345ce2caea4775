"""What is left of an interrupted takeover, by what its operator stated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from support.standings import EAST, WEST, observed, standing
from zerotail.cli import takeover as commands
from zerotail.config import Configuration
from zerotail.core.epoch import Durability, Phase
from zerotail.core.identity import ChannelName, Timeline, epoch_of
from zerotail.core.staleness import CopyAge
from zerotail.core.takeover import Step, Strategy
from zerotail.errors import Refused, Unavailable
from zerotail.operate import watcher as watchers
from zerotail.operate import world as worlds
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


def test_a_rest_keeps_the_number_that_was_planned_though_no_receiver_answers_now(configuration: Configuration) -> None:
    promoted = World({EAST: None, WEST: observed(standing(timeline=Timeline(2)))})
    begun = msgspec.structs.replace(note("--accept-loss"), site=WEST, other=EAST, epoch=epoch_of(5001, 1))
    assert plan_rest(configuration, promoted, WEST, begun, Statements()).steps.epoch == epoch_of(5001, 1)


def test_a_rest_goes_behind_what_a_receiver_has_met(configuration: Configuration) -> None:
    met = {ChannelName("bank"): epoch_of(5000, 0)}
    world = World({EAST: None, WEST: observed(standing(timeline=Timeline(2)))}, claims=met)
    accepted = msgspec.structs.replace(note("--accept-loss"), site=WEST, other=EAST)
    assert plan_rest(configuration, world, WEST, accepted, Statements()).steps.epoch == epoch_of(5001, 1)
    with pytest.raises(Refused) as refused:
        plan_rest(configuration, world, WEST, msgspec.structs.replace(accepted, accepted=()), Statements())
    assert refused.value.code == "ZT475"


def test_resume_asks_receivers(configuration: Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def look(_: Configuration, *, ask_receivers: bool = False) -> World:
        asked.append(ask_receivers)
        return World({EAST: None, WEST: None})

    monkeypatch.setattr(worlds, "observe_world", look)
    monkeypatch.setattr(watchers, "observe_world", look)
    operator = Operator(configuration, Notebook(tmp_path), "somebody")
    monkeypatch.setattr(commands, "operator_of", lambda *_: operator)
    typed = CliRunner().invoke(commands.command, ["resume", "--to", "west"])
    assert isinstance(typed.exception, Unavailable)
    automatic = configuration.takeover.model_copy(update={"automatic": True})
    own = replace(operator, configuration=configuration.model_copy(update={"takeover": automatic}))
    watcher = watchers.Watcher(own, WEST, lambda _: None, lambda *_, **__: None)
    with pytest.raises(Unavailable):
        watcher._finish(note())
    assert asked == [True, True]
