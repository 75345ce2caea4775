"""Where a database could stand, in few words."""

from __future__ import annotations

from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.identity import Lsn, SiteName, Timeline, epoch_of
from zerotail.ports import SiteObserved, Standing

EAST, WEST = SiteName("east"), SiteName("west")
FIRST = Timeline(1)
NUMBERS = {EAST: 0, WEST: 1}


def standing(
    generation: int = 1,
    site: SiteName = EAST,
    *,
    phase: Phase = Phase.LIVE,
    durability: Durability = Durability.GATED,
    timeline: Timeline | None = FIRST,
    cause: str = "start",
) -> Standing:
    """A database whose current epoch is one of `site`, on the first timeline."""
    row = EpochRow(epoch_of(generation, NUMBERS[site]), site, FIRST, durability, phase, Cut(), cause)
    return Standing(Lineage((row,)), timeline, 1, life="" if timeline is None else "this")


def observed(seen: Standing) -> SiteObserved:
    """The same as a look at the site answers it."""
    return SiteObserved(seen, Lsn(1000), numbers=NUMBERS)
