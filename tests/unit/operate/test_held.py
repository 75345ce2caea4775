"""What a copy holds, as a refusal says it: with numbers, and not too many of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.core.epoch import Durability
from zerotail.core.identity import ChannelName, EmissionNumber, Lsn, PartitionNumber, Position, StageName
from zerotail.core.takeover import SiteView, plan_takeover
from zerotail.errors import Refused
from zerotail.operate.held import told_holding
from zerotail.operate.world import World
from zerotail.postgres.holding import Applied, Emitted, Holding

pytestmark = pytest.mark.fast

OPENED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CHANGED = datetime(2026, 1, 2, 3, 9, 0, tzinfo=UTC)


def applied(partition: int, next_position: int) -> Applied:
    return Applied(StageName("settle"), PartitionNumber(partition), Position(next_position))


def emitted(partition: int, number: int, target: int = 0) -> Emitted:
    return Emitted(ChannelName("bank"), PartitionNumber(partition), PartitionNumber(target), EmissionNumber(number))


def test_a_few_partitions_are_told_one_by_one() -> None:
    held = Holding(OPENED, CHANGED, (applied(0, 120), applied(1, 0)), (emitted(0, 120), emitted(1, 7, target=3)))
    assert told_holding(Lsn((1 << 32) + 0xAB), held) == (
        "the epoch, exposed since 2026-01-02 03:04:05 UTC",
        "the log up to 1/AB, the last change of 2026-01-02 03:09:00 UTC",
        "stage settle: partition 0 up to position 119, partition 1 nothing",
        "channel bank: partition 0 up to number 120, partition 1 to 3 up to number 7",
    )


def test_many_partitions_are_summed_up() -> None:
    heads = tuple(applied(partition, 100 + partition) for partition in range(16))
    lanes = tuple(emitted(partition, 50 + partition) for partition in range(16))
    assert told_holding(Lsn(0), Holding(None, None, heads, lanes)) == (
        "the log up to 0/0",
        "stage settle: 16 partitions with 100 to 115 records, 1720 in all",
        "channel bank: 16 partitions with 50 to 65 messages, 920 in all",
    )


def test_a_copy_that_says_no_more_is_told_by_its_log() -> None:
    assert told_holding(Lsn(16), None) == ("the log up to 0/10", "its stages and channels could not be read")


def test_a_copy_that_may_lack_what_was_sent_is_refused_with_what_it_holds_and_the_flag_that_accepts_it() -> None:
    copy = standing(durability=Durability.EXPOSED, timeline=None)
    world = World({EAST: None, WEST: observed(copy)}, {WEST: Holding(OPENED, CHANGED, (applied(0, 120),))})
    with pytest.raises(Refused) as refused:
        plan_takeover(SiteView(WEST, 1, copy.lineage, None), held=world.told_holding(WEST))
    assert refused.value.code == "ZT430"
    assert "stage settle: partition 0 up to position 119" in refused.value.why.splitlines()
    assert any(line.startswith("zerotail takeover plan --to west --accept-loss") for line in refused.value.tries)
