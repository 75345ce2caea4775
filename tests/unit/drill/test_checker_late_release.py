"""A sender that read `exposed` and is slow: what it sends after the row `gated` is judged by what it had read."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from histories import clean
from planted import each, put
from zerotail.core.identity import Lsn
from zerotail.drill.checker import Expect, check
from zerotail.drill.history import AnyEvent, EmissionAttempted, ModeChanged, Released

pytestmark = pytest.mark.fast

ROW = 500


def history(read_up_to: int, row: int) -> tuple[list[AnyEvent], Expect]:
    """A clean one in which an epoch goes back to gated just before the last release of its exposure."""
    for seed in range(200):
        events, expect = clean(seed)
        for mode in [one for one in each(events, ModeChanged) if one.mode == "gated"]:
            before = events[: events.index(mode)]
            releases = [one for one in before if type(one) is Released and one.epoch == mode.epoch]
            if not releases or releases[-1].by != "exposure":
                continue
            late = releases[-1]
            behind = before[before.index(late) :]
            if not any(type(one) is EmissionAttempted and one.number <= late.through for one in behind):
                continue
            rest = [one for one in events if one is not mode]
            return put(
                rest, late, replace(mode, time=late.time, lsn=Lsn(row)), replace(late, lsn_wanted=Lsn(read_up_to))
            ), expect
    raise AssertionError("no history has an exposure that ends")


@pytest.mark.parametrize("read_up_to", [1, ROW])
def test_what_was_read_before_the_row_may_leave_after_it(read_up_to: int) -> None:
    events, expect = history(read_up_to, ROW)
    assert not {"S8", "S18"} & set(check(events, expect).broken_rules)


@pytest.mark.parametrize(("read_up_to", "row"), [(ROW + 1, ROW), (0, ROW), (ROW, 0)])
def test_what_was_read_behind_it_or_nobody_knows_where_may_not(read_up_to: int, row: int) -> None:
    events, expect = history(read_up_to, row)
    assert {"S8", "S18"} <= set(check(events, expect).broken_rules)
