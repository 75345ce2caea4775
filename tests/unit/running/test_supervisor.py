"""Which ends of its children a supervisor takes for good, and which of two instances goes on."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

from zerotail.cli.run import _ENDS_OF_TURNS
from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.head import first_head
from zerotail.core.identity import SiteName, Timeline, epoch_of
from zerotail.flow.stage import Place
from zerotail.ports import End, HeadRead, Standing
from zerotail.running.supervisor import Supervisor
from zerotail.spark.running_stage import reason_to_go

pytestmark = pytest.mark.fast

EAST, WEST = SiteName("east"), SiteName("west")
FIRST, THIRD = epoch_of(1, 0), epoch_of(3, 0)
NEVER_SECONDS = 30.0


def supervised(child: str, code: int, tmp_path: Path, *, standby: bool) -> tuple[int, int]:
    """How a supervisor ends whose child ends with this code, the second time with 70; and how often it was started."""
    starts = tmp_path / "starts"
    script = f"import sys; f = open({str(starts)!r}, 'a+'); f.write('.'); sys.exit({code} if f.tell() == 1 else 70)"
    lines: list[str] = []
    one = Supervisor(
        {child: [sys.executable, "-c", script]}, lines.append, ends_of_turns=_ENDS_OF_TURNS if standby else {}
    )
    too_long = Timer(NEVER_SECONDS, one.stop)
    too_long.start()
    try:
        return one.run(), len(starts.read_text())
    finally:
        too_long.cancel()


@pytest.mark.parametrize(("child", "code"), [("flow", 7), ("emitter", 6), ("emitter", 7)])
def test_at_a_standby_the_end_of_a_turn_is_no_end(child: str, code: int, tmp_path: Path) -> None:
    assert supervised(child, code, tmp_path, standby=True) == (70, 2)


def test_at_a_standby_too_the_older_of_two_instances_ends(tmp_path: Path) -> None:
    assert supervised("flow", 6, tmp_path, standby=True) == (6, 1)


@pytest.mark.parametrize(("child", "code"), [("flow", 6), ("flow", 7), ("emitter", 6), ("emitter", 7)])
def test_elsewhere_both_codes_are_the_end(child: str, code: int, tmp_path: Path) -> None:
    assert supervised(child, code, tmp_path, standby=False) == (code, 1)


LEAVES = """
import os, subprocess, sys
left = subprocess.Popen([sys.executable, "-c", {stays!r}], start_new_session=True, stdout=subprocess.PIPE)
left.stdout.readline()
open({pids!r}, "a").write(f"{{left.pid}}\\n")
sys.exit(1 if os.stat({pids!r}).st_size < 20 and open({pids!r}).read().count("\\n") < 2 else 70)
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"


@pytest.mark.parametrize("stays", ["import time; print(flush=True); time.sleep(600)", DEAF], ids=["heeds", "deaf"])
def test_what_a_start_leaves_behind_ends_with_it(stays: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = LEAVES.format(stays=stays, pids=str(pids))
    lines: list[str] = []
    one = Supervisor({"flow": [sys.executable, "-c", script]}, lines.append)
    too_long = Timer(NEVER_SECONDS, one.stop)
    too_long.start()
    try:
        assert one.run() == 70
    finally:
        too_long.cancel()
    left = [int(pid) for pid in pids.read_text().split()]
    assert len(left) == 2, "one for each of two starts"
    for pid in left:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def lineage(*epochs: tuple[int, SiteName]) -> Lineage:
    return Lineage(
        tuple(EpochRow(epoch, site, Timeline(1), Durability.GATED, Phase.LIVE, Cut()) for epoch, site in epochs)  # type: ignore[arg-type]
    )


STANDING = Standing(lineage((FIRST, EAST)), Timeline(1), 7)
HEAD = replace(first_head(FIRST, []), claim=4)
OURS = Place(STANDING, HEAD, {}, None)


def seen(claim: int, epoch: int = FIRST, standing: Standing = STANDING) -> HeadRead:
    return HeadRead(standing, replace(HEAD, claim=claim, epoch=epoch), {}, None)  # type: ignore[arg-type]


def reason(read: HeadRead, *, by_turns: bool = True, decides: bool = True) -> End | None:
    return reason_to_go(EAST, OURS, read, by_turns=by_turns, decides=decides)


def test_who_has_the_last_claim_goes_on() -> None:
    assert reason(seen(4)) is None
    assert reason(seen(4), by_turns=False) is None


def test_one_head_decides_which_of_two_goes_on_and_the_others_are_claimed_again() -> None:
    assert reason(seen(5)) is End.SUPERSEDED
    assert reason(seen(5), decides=False) is None
    assert reason(seen(5), decides=False, by_turns=False) is End.SUPERSEDED


def test_a_turn_that_is_over_is_waited_for_again() -> None:
    elsewhere = Standing(lineage((FIRST, EAST), (epoch_of(2, 1), WEST)), None, 7)
    assert reason(seen(5, epoch_of(2, 1), elsewhere)) is End.NOT_ACTIVE
    back = Standing(lineage((FIRST, EAST), (epoch_of(2, 1), WEST), (THIRD, EAST)), Timeline(1), 7)
    assert reason(seen(6, THIRD, back)) is End.NOT_ACTIVE
    assert reason(seen(4, THIRD, back)) is None
