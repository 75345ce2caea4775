"""What is left of an interrupted takeover, by what its operator stated."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.standings import EAST, WEST, observed, standing
from zerotail.config import Configuration, load
from zerotail.core.epoch import Durability, Phase
from zerotail.core.takeover import Step
from zerotail.operate.notebook import Note, now
from zerotail.operate.takeover import Statements, plan_rest, plan_takeover
from zerotail.operate.world import World


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    path = tmp_path / "zerotail.yaml"
    sites = {
        name: {"kafka": {"bootstrap": f"{name}:1"}, "database": {"dsn": f"host={name}"}} for name in ("east", "west")
    }
    path.write_text(yaml.safe_dump({"name": "bank", "sites": sites}))
    return load(str(path))


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
