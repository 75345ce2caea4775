"""A batch is never decided at a time of the far future: the time of a segment does not fall, at either site."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from zerotail import ports
from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.head import Hint, first_head
from zerotail.core.identity import (
    Lsn,
    Offset,
    PartitionNumber,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    TopicName,
    epoch_of,
)
from zerotail.core.record import digest_of
from zerotail.errors import Unavailable
from zerotail.flow.stage import AHEAD_MICROSECONDS, Place, Stage, Taken, take_batch
from zerotail.handler import Emission, Given, Record, State

pytestmark = pytest.mark.fast

EPOCH, A, NOW = epoch_of(1, 0), ProducerNumber(1), 1_800_000_000_000_000
STANDING = ports.Standing(
    Lineage((EpochRow(EPOCH, SiteName("east"), Timeline(1), Durability.GATED, Phase.LIVE, Cut()),)), Timeline(1), 7
)


class Notes:
    """Remembers what time it is."""

    def keys(self, record: Record) -> list[str]:
        return ["time"]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        state["time"] = given.now.isoformat()
        return []


STAGE = Stage(StageName("c"), PartitionNumber(0), TopicName("p"), Notes(), "1", {})


def take(at: int, before: int = NOW, clock: int | None = NOW) -> Any:
    """What becomes of a batch of one record that is decided then, with the database's clock."""
    head = replace(first_head(EPOCH, [A]), decided_at=before)
    batch = ports.Batch([A], [Serial(1)], [EPOCH], [digest_of(b"{}")], [b"{}"])
    story = take_batch(STAGE, Place(STANDING, head, {}, None), batch, Hint("log", Offset(1)), at)
    answer: Any = None
    try:
        while True:
            effect = story.send(answer)
            answer = ports.StateLoaded({}, clock) if isinstance(effect, ports.LoadState) else ports.Done(Lsn(9))
    except StopIteration as stop:
        return stop.value


@pytest.mark.parametrize("at", [NOW - 1, NOW + AHEAD_MICROSECONDS])
def test_clocks_that_differ_as_clocks_do_hold_up_nothing(at: int) -> None:
    taken = take(at)
    assert isinstance(taken, Taken)
    assert taken.head.decided_at == max(at, NOW)


@pytest.mark.parametrize("at", [NOW + AHEAD_MICROSECONDS + 1, 4_070_908_800_000_000, 2**63 - 1])
def test_a_clock_of_the_far_future_decides_nothing_and_says_so(at: int) -> None:
    with pytest.raises(Unavailable, match="the clock of the machine that runs the stage says"):
        take(at)


def test_what_a_clock_of_the_future_has_fixed_before_there_was_this_rule_goes_on() -> None:
    taken = take(NOW, before=4_070_908_800_000_000)
    assert isinstance(taken, Taken)
    assert taken.head.decided_at == 4_070_908_800_000_000
