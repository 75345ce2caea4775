"""`zerotail.testing`: a handler in the simulated pair of sites; the example of the documentation runs."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from zerotail.errors import Misused
from zerotail.handler import Emission, Given, Record, State
from zerotail.testing import Simulation

pytestmark = pytest.mark.fast

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing-a-handler.md"


class Sum:
    """Adds everything up under one key."""

    def keys(self, record: Record) -> list[str]:
        return ["sum"]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        state["sum"] = state.get("sum", 0) + record.value
        return [Emission("bank", [state["sum"], str(given.uuid())])]


def test_the_example_of_the_documentation_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, str(DOCUMENT), "exec"), names)  # noqa: S102 - our own document
    names["test_every_payment_is_answered_once_whatever_crashes"]()


def test_every_instruction_is_applied_once_and_every_message_accepted() -> None:
    result = Simulation(Sum(), producers=2, partitions=2).run(range(1, 11))
    assert result.verdict.passed, str(result.verdict)
    assert result.applied == 10
    assert sum(state["sum"] for state in result.state.values()) == 55
    assert [one.number for one in result.accepted if one.partition == 0] == [1, 2, 3, 4, 5, 6]
    assert result.crashes == 0


def test_crashes_and_a_lost_site_change_nothing_about_the_result() -> None:
    for step in range(5, 75, 10):
        result = Simulation(Sum(), partitions=2).run(range(1, 9), crash_at=[step, step + 3], lose_site_at=step + 9)
        assert result.verdict.passed, str(result.verdict)
        assert result.crashes >= 2
        assert sum(state["sum"] for state in result.state.values()) == 36


def test_the_same_arguments_give_the_same_result() -> None:
    first, second = (Simulation(Sum()).run(range(6), crash_at=[9, 20]) for _ in range(2))
    assert first == second


def test_a_handler_that_rolls_dice_is_found_out() -> None:
    class Forgetful(Sum):
        def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
            return [Emission("bank", time.perf_counter_ns())]

    verdict = Simulation(Forgetful()).run(range(4)).verdict
    assert not verdict.passed
    assert "S11" in str(verdict)
    assert "a clock, a random source" in str(verdict)


def test_a_handler_that_touches_state_it_did_not_name_is_told_so() -> None:
    class Nosy(Sum):
        def keys(self, record: Record) -> list[str]:
            return []

    with pytest.raises(Misused, match="did not name"):
        Simulation(Nosy()).run([1])


def test_several_channels_have_receivers_of_their_own() -> None:
    class Two(Sum):
        def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
            return [Emission("bank", record.value), Emission("mail", record.value)]

    result = Simulation(Two(), channels={"bank": "R1", "mail": "R0"}).run([1, 2, 3], crash_at=[20])
    assert result.verdict.passed, str(result.verdict)
    assert {one.channel for one in result.accepted} == {"bank", "mail"}
    assert len(result.accepted) == 6
