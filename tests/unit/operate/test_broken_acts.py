"""An act that meets something broken in the middle says how it is finished, and keeps the number and the exit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.standings import EAST, WEST
from zerotail import ports
from zerotail.config import Configuration
from zerotail.core.identity import Epoch
from zerotail.errors import Broken
from zerotail.operate.act import Operator, acting
from zerotail.operate.notebook import Notebook
from zerotail.operate.plan import REJOIN, TAKEOVER, Limit, make_plan

pytestmark = pytest.mark.fast


class Adapters:
    """Does whatever it is asked."""

    def carry_out(self, _: ports.Effect) -> ports.Done:
        return ports.Done()

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def operator(configuration: Configuration, tmp_path: Path) -> Operator:
    return Operator(configuration, Notebook(tmp_path / "notes"), "somebody")


def broken_behind(operator: Operator, act: str, *steps: ports.Effect) -> Broken:
    """What an act says that does these steps and then finds a journal that is broken."""

    def story() -> ports.Story[Any]:
        for step in steps:
            yield step
            yield ports.RecordStep(WEST, Epoch(513), 1)
        raise Broken("the chain ends", code="ZT701", tries=("zerotail journal compare",))

    planned = make_plan(act, WEST, EAST, Epoch(513), seen=(), steps=("promote",), limits=(Limit("promote", 20.0),))

    def carry_out() -> None:
        with acting(operator, planned, ()) as under_way:
            under_way.adapters = Adapters()  # type: ignore[assignment]
            under_way.carry_through(story())

    with pytest.raises(Broken) as broken:
        carry_out()
    return broken.value


def test_it_names_the_line_that_goes_on(operator: Operator) -> None:
    said = broken_behind(operator, TAKEOVER, ports.Promote(WEST))
    assert (said.message, said.code, said.exit_code) == ("the chain ends", "ZT701", 70)
    assert said.tries == ("zerotail journal compare", "zerotail takeover resume    # when that is mended")
    assert operator.notebook.find_unfinished((TAKEOVER,), WEST) is not None


def test_a_rejoin_is_planned_again(operator: Operator) -> None:
    said = broken_behind(operator, REJOIN, ports.Promote(WEST))
    assert said.tries[1] == "zerotail rejoin plan --site west    # when that is mended"


def test_before_the_first_step_there_is_nothing_to_resume(operator: Operator) -> None:
    assert broken_behind(operator, TAKEOVER).tries == ("zerotail journal compare",)
    assert operator.notebook.find_unfinished((TAKEOVER,), WEST) is None
