"""Whoever works at a site goes on in the newer epochs of that site, and ends when the work is another one's."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from support.standings import EAST, WEST, standing
from zerotail.core.epoch import Durability, Lineage, Phase
from zerotail.ports import End, Unreachable
from zerotail.running import renewal
from zerotail.running.renewal import through_renewals

pytestmark = pytest.mark.fast

OPENED = standing(2, phase=Phase.OPENED, durability=Durability.EXPOSED)
RENEWED = standing(2, durability=Durability.EXPOSED)
REPLACED = standing(2, WEST)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewal, "_AGAIN_SECONDS", 0.0)


def run(looks: list[Any], ends: list[End]) -> tuple[End, int]:
    """How the work ended for good, and how often it was done; the last look is repeated."""
    left = list(looks)
    endings: Iterator[End] = iter(ends)
    done = 0

    def look() -> object:
        return left.pop(0) if len(left) > 1 else left[0]

    def work() -> End:
        nonlocal done
        done += 1
        return next(endings)

    return through_renewals(look, EAST, Event(), work), done


@pytest.mark.parametrize("told", [End.NOT_ACTIVE, End.SUPERSEDED])
def test_it_begins_again_in_a_newer_epoch_of_its_own_site(told: End) -> None:
    looks = [standing(), OPENED, Unreachable(), OPENED, RENEWED, RENEWED, REPLACED]
    assert run(looks, [told, End.NOT_ACTIVE]) == (End.NOT_ACTIVE, 2)


def test_a_look_that_fails_is_made_again_before_anything_begins() -> None:
    assert run([Unreachable(), standing(), RENEWED, RENEWED], [End.NOT_ACTIVE, End.SUPERSEDED]) == (End.SUPERSEDED, 2)


def test_it_does_not_begin_in_an_epoch_that_is_not_live_yet() -> None:
    assert run([OPENED, RENEWED], [End.SUPERSEDED]) == (End.SUPERSEDED, 1)


def test_it_ends_when_another_site_or_another_instance_works() -> None:
    assert run([standing(), REPLACED], [End.NOT_ACTIVE]) == (End.NOT_ACTIVE, 1)
    assert run([standing()], [End.SUPERSEDED]) == (End.SUPERSEDED, 1)


def test_who_slept_through_an_epoch_of_the_other_site_ends() -> None:
    back = standing(3)
    slept = replace(back, lineage=Lineage((*standing().lineage.rows, *REPLACED.lineage.rows, *back.lineage.rows)))
    assert run([standing(), slept], [End.SUPERSEDED]) == (End.SUPERSEDED, 1)


def test_who_is_out_of_step_begins_again() -> None:
    assert run([standing()], [End.OUT_OF_STEP, End.SUPERSEDED]) == (End.SUPERSEDED, 2)
