"""No act is endless or silent: it says what it waits for, gives up what comes no nearer, and ends at its deadline."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from support.standings import EAST, WEST
from zerotail import ports
from zerotail.config import Configuration
from zerotail.core.identity import Epoch
from zerotail.core.takeover import Strategy
from zerotail.errors import Refused, Unfinished
from zerotail.operate import act as acts
from zerotail.operate import limits, waiting
from zerotail.operate.act import Operator, acting
from zerotail.operate.command import ATTACH_SECONDS
from zerotail.operate.notebook import Notebook
from zerotail.operate.plan import HANDOVER, REJOIN, TAKEOVER, ActPlan, Limit, make_plan
from zerotail.postgres.tail import TAIL_SECONDS
from zerotail.postgres.transaction import OUT_OF_TIME

pytestmark = pytest.mark.fast
SECONDS = 20.0


class Adapters:
    """Answers every effect at once, or holds it until somebody interrupts."""

    def __init__(self, hold: bool = False) -> None:
        self.hold = hold

    def carry_out(self, effect: ports.Effect) -> ports.Done:
        if self.hold:
            Event().wait(SECONDS)
        return ports.Done()

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def operator(configuration: Configuration, tmp_path: Path, said: list[str]) -> Operator:
    return Operator(configuration, Notebook(tmp_path / "notes"), "somebody", say=said.append)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "STANDSTILL_SECONDS", 0.3)
    monkeypatch.setattr(acts, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(waiting, "SAY_EVERY_SECONDS", 0.05)


def plan_within(seconds: float, act: str = TAKEOVER) -> ActPlan:
    return make_plan(act, WEST, EAST, Epoch(513), seen=(), steps=("go live",), limits=(Limit("go live", seconds),))


def under_way(operator: Operator, plan: ActPlan, adapters: Adapters) -> Any:
    begun = acting(operator, plan, ())

    def carry_through(story: ports.Story[Any]) -> Any:
        with begun as act:
            act.adapters = adapters  # type: ignore[assignment]
            return act.carry_through(story)

    return carry_through


def waits(nearer: Callable[[int], bool] = lambda _: False) -> ports.Story[int]:
    """Waits for ever, unless it is told that it is late; how often it looked."""
    looks = 0
    while not (yield ports.Pause(f"the other site to catch up: look {looks}", nearer=nearer(looks))):
        looks += 1
    return looks


def test_it_says_what_it_waits_for_until_it_has_waited_long_enough(operator: Operator, said: list[str]) -> None:
    began = time.monotonic()
    assert under_way(operator, plan_within(SECONDS), Adapters())(waits()) > 1
    assert time.monotonic() - began < SECONDS
    assert len(said) >= 3, "every few seconds"
    assert all("waits for the other site to catch up: look" in line and "it ends by" in line for line in said)


def test_what_comes_nearer_is_waited_for_until_the_deadline(operator: Operator) -> None:
    began = time.monotonic()
    with pytest.raises(Unfinished, match="waiting for the other site to catch up") as ended:
        under_way(operator, plan_within(1.0), Adapters())(waits(lambda look: look % 10 == 0))
    assert ended.value.code == "ZT408"
    assert 0.9 < time.monotonic() - began < SECONDS


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (TAKEOVER, "zerotail takeover resume"),
        (HANDOVER, "zerotail handover resume"),
        (REJOIN, "zerotail rejoin plan --site west"),
    ],
)
def test_what_does_not_end_by_itself_is_ended_at_the_deadline(
    operator: Operator, said: list[str], act: str, line: str
) -> None:
    def copies() -> ports.Story[None]:
        yield ports.CopyDatabase(EAST, WEST, None)

    began = time.monotonic()
    with pytest.raises(Unfinished, match=r"not done by its deadline, 0\.5 s after it began") as ended:
        under_way(operator, plan_within(0.5, act), Adapters(hold=True))(copies())
    assert time.monotonic() - began < SECONDS
    assert (ended.value.code, ended.value.exit_code, ended.value.tries) == ("ZT408", 5, (line,))
    assert "the command that copies the database" in ended.value.message
    assert said


def test_so_is_one_of_a_process_that_takes_ctrl_c_for_its_end(operator: Operator) -> None:
    """A watcher does: it must go on to watch when an act of it was ended."""

    def copies() -> ports.Story[None]:
        yield ports.CopyDatabase(EAST, WEST, None)

    told: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: told.append(number))
    try:
        with pytest.raises(Unfinished, match="not done by its deadline"):
            under_way(operator, plan_within(0.5), Adapters(hold=True))(copies())
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == []
    assert signal.getsignal(OUT_OF_TIME) is signal.SIG_DFL


def test_beside_the_main_thread_it_ends_between_two_effects(operator: Operator) -> None:
    def looks() -> Iterator[Any]:
        while True:
            yield ports.ReadPosition()

    ended: list[Unfinished] = []

    def work() -> None:
        with pytest.raises(Unfinished) as caught:
            under_way(operator, plan_within(0.3), Adapters())(looks())
        ended.append(caught.value)

    worker = Thread(target=work, daemon=True)
    worker.start()
    worker.join(SECONDS)
    assert [error.code for error in ended] == ["ZT408"]


def test_whoever_gives_up_says_what_goes_on(operator: Operator) -> None:
    def gives_up() -> ports.Story[None]:
        yield ports.ReadPosition()
        raise Unfinished("the other site has not caught up in time", code="ZT411")

    with pytest.raises(Unfinished) as given_up:
        under_way(operator, plan_within(SECONDS), Adapters())(gives_up())
    assert (given_up.value.code, given_up.value.tries) == ("ZT411", ("zerotail takeover resume",))


def test_an_act_that_ended_in_time_is_not_interrupted_afterwards(operator: Operator) -> None:
    def short() -> ports.Story[None]:
        yield ports.ReadPosition()

    under_way(operator, plan_within(0.2), Adapters())(short())
    assert not Event().wait(0.4)


def test_every_limit_lies_above_the_time_outs_below_it(configuration: Configuration) -> None:
    handover = {one.step: one.seconds for one in limits.limits_of_handover(configuration, Strategy.AUTO)}
    assert {"drain", "stop the old primary", "promote", "go live", "copy the database"} <= set(handover)
    assert handover["drain"] > limits.STANDSTILL_SECONDS
    assert handover["copy the database"] >= ATTACH_SECONDS
    rejoin = {one.step: one.seconds for one in limits.limits_of_rejoin(copies=True, keeps=True, gates=True)}
    assert rejoin["keep the tail"] > TAIL_SECONDS
    assert min(one.seconds for one in limits.limits_of_rejoin(copies=True, keeps=True, gates=True)) > 0
    assert limits.limits_of_rejoin(copies=False, keeps=True, gates=False) == ()


def test_while_a_database_is_copied_the_active_site_can_go_on_alone(operator: Operator) -> None:
    """For hours nobody could act on this machine, were it not so; but no second copy is made beside the first."""

    class Copies(Adapters):
        def carry_out(self, effect: ports.Effect) -> ports.Done:
            if isinstance(effect, ports.CopyDatabase):
                beside = replace(operator, notebook=Notebook(operator.notebook.folder))
                with acting(beside, plan_within(SECONDS), ()):
                    others.append(TAKEOVER)
                with pytest.raises(Refused, match="is under way"), acting(beside, plan_within(SECONDS, REJOIN), ()):
                    others.append(REJOIN)
            return ports.Done()

    def copies() -> ports.Story[None]:
        yield ports.CopyDatabase(EAST, WEST, None)
        with pytest.raises(Refused, match="is under way"), Notebook(operator.notebook.folder).locked():
            others.append("behind the copy")

    others: list[str] = []
    under_way(operator, plan_within(SECONDS, REJOIN), Copies())(copies())
    assert others == [TAKEOVER]
