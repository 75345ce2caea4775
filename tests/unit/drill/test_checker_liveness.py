"""Liveness: what counts as the end of a takeover, and what a fenced process has to do."""

from __future__ import annotations

import pytest

from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    PartitionNumber,
    SiteName,
)
from zerotail.drill.checker import Expect, check
from zerotail.drill.history import (
    AnyEvent,
    EmissionAttempted,
    EpochOpened,
    LimitBegan,
    LimitReached,
    ProcessEnded,
    ProcessStarted,
)

pytestmark = pytest.mark.fast

EAST, WEST = SiteName("east"), SiteName("west")
OLD, NEW = Epoch(256), Epoch(513)


def opened(time: int, epoch: Epoch, site: SiteName) -> EpochOpened:
    return EpochOpened(time=time, epoch=epoch, site=site, mode="exposed", cause="takeover")


def arrived(time: int, epoch: Epoch, answer: str = "accepted") -> EmissionAttempted:
    return EmissionAttempted(
        time=time,
        channel=ChannelName("bank"),
        partition=PartitionNumber(0),
        number=EmissionNumber(1),
        digest="aa",
        epoch=epoch,
        incarnation=Incarnation(1),
        site=WEST if epoch == NEW else EAST,
        answer=answer,  # type: ignore[arg-type]
    )


def late(*events: AnyEvent, limit: int | None = None) -> set[str]:
    broken = check(events, Expect(fenced_process_limit=limit)).broken_rules
    return {rule for rule in broken if rule.startswith("L")}


BEGAN = LimitBegan(time=10, rule="L1", what="takeover to west", limit=5)


def test_a_takeover_ends_with_the_first_emission_of_an_epoch_opened_since() -> None:
    assert late(BEGAN, opened(11, NEW, WEST), arrived(15, NEW)) == set()
    assert late(BEGAN, opened(11, NEW, WEST), arrived(16, NEW)) == {"L1"}


def test_an_emission_of_the_old_epoch_or_a_refused_one_does_not_end_a_takeover() -> None:
    before = opened(1, OLD, EAST)
    assert late(before, BEGAN, opened(11, NEW, WEST), arrived(12, OLD)) == {"L1"}
    assert late(before, BEGAN, opened(11, NEW, WEST), arrived(12, NEW, "gap")) == {"L1"}


def test_with_nothing_to_send_a_takeover_ends_with_its_mark() -> None:
    assert late(BEGAN, LimitReached(time=15, rule="L1", what="takeover to west")) == set()
    assert late(BEGAN, LimitReached(time=15, rule="L1", what="takeover to east")) == {"L1"}


def test_what_was_reached_before_it_began_does_not_count() -> None:
    assert late(LimitReached(time=9, rule="L1", what="takeover to west"), BEGAN) == {"L1"}


def zombie_that_ends(time: int, exit_code: int = 5) -> list[AnyEvent]:
    return [
        ProcessStarted(time=1, process="emitter", site=EAST, epoch=OLD, incarnation=Incarnation(1)),
        ProcessStarted(time=1, process="other", site=EAST, epoch=OLD, incarnation=Incarnation(2)),
        arrived(20, OLD, "older-epoch"),
        arrived(24, OLD, "older-epoch"),
        ProcessEnded(time=time, process="emitter", exit_code=exit_code, reason="fenced"),
    ]


def test_a_fenced_process_has_the_limit_from_its_first_refusal() -> None:
    assert late(*zombie_that_ends(25), limit=5) == set()
    assert late(*zombie_that_ends(26), limit=5) == {"L4"}
    assert late(*zombie_that_ends(25, exit_code=0), limit=5) == {"L4"}
    assert late(*zombie_that_ends(25)[:-1], limit=5) == {"L4"}


def test_a_refused_sender_that_nobody_recorded_as_a_process_is_not_judged() -> None:
    assert late(arrived(20, OLD, "older-epoch"), limit=5) == set()
