"""Bugs of epochs and cuts."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# ruff: noqa: ARG001
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zerotail import ports
from zerotail.core import epoch, head, staleness, takeover
from zerotail.core.gate import Release
from zerotail.core.identity import Epoch, Lsn, Serial, Timeline, epoch_of
from zerotail.failover import follow, rejoin
from zerotail.failover import takeover as takeovers
from zerotail.flow import emit, produce, stage
from zerotail.simulation import normal_day, operators
from zerotail.simulation import plan as plans
from zerotail.simulation.bugs.planting import (
    BOTH_ALONE,
    BUGS,
    CUT_OFF,
    CUT_OFF_INSIDE,
    INSIDE,
    PLAIN,
    R2,
    SITE_CHANGES,
    Patch,
    bug,
)
from zerotail.simulation.world import World


def no_limits() -> Patch:
    def limits(self: epoch.Lineage, _: Any) -> dict[Epoch, dict[Any, Serial] | None]:
        every: dict[Any, Serial] = dict.fromkeys(range(64), Serial(1 << 40))
        return {row.epoch: every for row in self.rows[:-1]} | {self.current.epoch: None}

    return (epoch.Lineage, "limits", limits)


@bug("orphan-filter-off", "records beyond the cut are taken", "S2", "S14", where=INSIDE)
def _() -> list[Patch]:
    return [no_limits()]


@bug("cut-too-high", "the cut covers what was lost", "S2", "S14", where=INSIDE)
def _() -> list[Patch]:
    original = World._cut

    def cut(self: World, server: Any) -> epoch.Cut:
        found = original(self, server)
        return epoch.Cut({key: Serial(serial + 9) for key, serial in found.serials.items()}, found.heads)

    return [(World, "_cut", cut)]


@bug(
    "old-copy-takes-over",
    "nobody asks receivers, and a copy of before the other site went on alone takes over",
    "S1",
    "S2",
    "S6",
    "S14",
    "I7",
    "I9",
    "I21",
    where=R2 | {"forgetful": True, "more_faults": (plans.SITE_DOWN, plans.EXPOSE, plans.TAKEOVER) * 3, "spacing": 20},
    seed=1028,
)
def _() -> list[Patch]:
    def nothing(*_: Any, **__: Any) -> None:
        return

    return [(staleness, "require_not_superseded", nothing)]


@bug(
    "cut-covers-holes",
    "the cut of a producer is its highest serial, though one below it may be lost",
    "S2",
    "S14",
    where=INSIDE | PLAIN | {"given": True, "clients": 3},
    seed=420,
)
def _() -> list[Patch]:
    original = World._cut

    def cut(self: World, server: Any) -> epoch.Cut:
        found = original(self, server)
        beyond = server.table("beyond a hole")
        highest = {key: Serial(max(serial, *beyond.get(key, ()), 0)) for key, serial in found.serials.items()}
        return epoch.Cut(highest, found.heads)

    return [(World, "_cut", cut)]


@bug(
    "promotes-whoever-answers",
    "nobody makes sure that the standby that is promoted is the one that was looked at",
    "S1",
    "S2",
    "S14",
    "I9",
    "I7",
    "I21",
    "S16",
    where={"more_faults": (plans.DB_ANOTHER, plans.SITE_DOWN, plans.TAKEOVER) * 3, "spacing": 17},
)
def _() -> list[Patch]:
    original = takeovers.Promote
    return [(takeovers, "Promote", lambda site, _: original(site, Lsn(0)))]


@bug(
    "rows-between-promotion-and-epoch",
    "instructions are stored on a timeline that has no epoch yet, so the cut covers rows that came later",
    "S2",
    "S14",
    where=INSIDE,
)
def _() -> list[Patch]:
    original = World._submit

    def submit_anyhow(self: World, actor: Any, effect: ports.Submit) -> Any:
        original_works = normal_day.works_at
        normal_day.works_at = lambda lineage, site, _: lineage.current.site == site
        try:
            return original(self, actor, effect)
        finally:
            normal_day.works_at = original_works

    return [(World, "_submit", submit_anyhow)]


@bug(
    "segments-between-promotion-and-epoch",
    "a batch is committed on a timeline that has no epoch yet",
    "S2",
    "S14",
    "S4",
    where=INSIDE,
)
def _() -> list[Patch]:
    original = World._commit

    def commit(self: World, actor: Any, effect: ports.Commit) -> Any:
        timeline = Timeline(self.servers[actor.site].timeline)
        fields = {name: getattr(effect, name) for name in effect.__struct_fields__} | {"timeline": timeline}
        return original(self, actor, ports.Commit(**fields))

    return [(World, "_commit", commit)]


@bug("timeline-unnoticed", "a failover inside the site opens no epoch", "S2", "S14", "S8", "S10", where=INSIDE)
def _() -> list[Patch]:
    def by_site(lineage: epoch.Lineage, site: Any, timeline: Any) -> bool:
        return lineage.current.site == site and timeline is not None

    return [
        (epoch, "works_at", by_site),
        (normal_day, "works_at", by_site),
        (takeover, "works_at", by_site),
        (operators, "works_at", by_site),
        BUGS["segments-between-promotion-and-epoch"].patches()[0],
    ]


@bug("epoch-without-site", "two sites can open the same epoch", "S7", "S2", "S6", where=BOTH_ALONE)
def _() -> list[Patch]:
    return [(takeover, "epoch_of", lambda generation, _: epoch_of(generation, 0))]


@bug("heads-keep-their-epoch", "opening an epoch leaves the heads as they are", "S15")
def _() -> list[Patch]:
    return [(head.Head, "in_epoch", lambda self, _: self)]


@bug("numbers-restart-at-takeover", "emission numbers begin again at 1", "S11", "L2", "S2", "S10")
def _() -> list[Patch]:
    return [(head.Head, "in_epoch", lambda self, new: replace(self, epoch=new, numbers={}))]


@bug("vector-restarts-at-takeover", "the vector begins again at 0", "S12", "S10", "L2", "S2")
def _() -> list[Patch]:
    def restart(self: head.Head, new: Epoch) -> head.Head:
        return replace(self, epoch=new, vector=dict.fromkeys(self.vector, Serial(0)))

    return [(head.Head, "in_epoch", restart)]


@bug(
    "exposed-copy-takes-over",
    "a site takes over though its copy says exposed",
    "I9",
    "I21",
    "S2",
    "S1",
    "S14",
    "I7",
    "S5",
    where=SITE_CHANGES,
)
def _() -> list[Patch]:
    original = takeover.plan_takeover

    def careless(view: takeover.SiteView, **options: Any) -> Any:
        return original(view, **{**options, "accept_loss": True})

    return [(takeover, "plan_takeover", careless)]


@bug("exposure-remembered", "an emitter remembers that it was exposed", "S8", "S18", "S2", where=SITE_CHANGES)
def _() -> list[Patch]:
    original = emit.pass_gate
    exposed: dict[Any, bool] = {}

    def remember(standing: ports.Standing, wanted: Lsn, **options: Any) -> ports.Story[Release | None]:
        if exposed.get(standing.asker):
            return Release(standing.asker, wanted, None)
        found = yield from original(standing, wanted, **options)
        exposed[standing.asker] = found is not None and found.answer is None
        return found

    return [(emit, "pass_gate", remember)]


@bug(
    "rejoin-without-looking",
    "a database is replaced whatever it did meanwhile",
    "S16",
    "S7",
    "S1",
    "S2",
    "I9",
    "I21",
    "S14",
    where=SITE_CHANGES,
)
def _() -> list[Patch]:
    original = World._copy_database

    def copy(self: World, actor: Any, effect: ports.CopyDatabase) -> Any:
        return original(self, actor, ports.CopyDatabase(effect.site, effect.source, None))

    def nothing(*_: Any) -> None:
        return

    return [(World, "_copy_database", copy), (rejoin, "require_nothing_released", nothing)]


def nobody_compares() -> list[Patch]:
    def none(*_: Any) -> bool:
        return False

    return [(operators.Operators, "_other_is_complete", none)]


@bug(
    "incomplete-replica-goes-on",
    "a replica that lacks what the other site holds is promoted inside a site, and its history wins",
    "S1",
    "S2",
    "S14",
    "I9",
    "I7",
    where=INSIDE,
)
def _() -> list[Patch]:
    def nothing(*_: Any, **__: Any) -> None:
        return

    off = [(takeover, "require_complete", nothing), (rejoin, "require_replaceable", nothing)]
    return [*off, *nobody_compares()]


@bug(
    "unpromoted-replica-goes-on",
    "a takeover promotes a replica inside the active site, which nobody could compare before",
    "S1",
    "S2",
    "S14",
    "I9",
    "I7",
    where=INSIDE | {"more_faults": (plans.DB_REPLICA, plans.TAKEOVER) * 6, "spacing": 7, "lasting": 60},
    seed=33,
)
def _() -> list[Patch]:
    def nothing(*_: Any) -> None:
        return

    return [(takeover, "_require_promoted", nothing)]


@bug(
    "rejoin-destroys-the-complete-copy",
    "a copy is replaced by one that lacks what was released",
    "S1",
    "S2",
    "S14",
    "I9",
    "I7",
    where=CUT_OFF_INSIDE,
)
def _() -> list[Patch]:
    def nothing(*_: Any, **__: Any) -> None:
        return

    return [(rejoin, "require_replaceable", nothing), *nobody_compares()]


@bug("tail-thrown-away", "what only a replaced copy had is not kept", "S16", where=CUT_OFF)
def _() -> list[Patch]:
    def drop(self: World, actor: Any, effect: ports.KeepTail) -> Any:
        return ports.Done(self.servers[effect.site].position)

    return [(World, "_keep_tail", drop)]


@bug("old-topics-read-again", "a site that comes back uses its old topics", "S13", where=SITE_CHANGES)
def _() -> list[Patch]:
    def same(topic: Any, _: Any) -> Any:
        return topic

    from zerotail.simulation import judge

    return [(module, "topic_at", same) for module in (produce, stage, follow, takeovers, judge)]
