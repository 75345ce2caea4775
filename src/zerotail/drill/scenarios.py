"""What is rehearsed. Each scenario is a story on the rehearsal's stage, and says beforehand what may be found.

East is active, west waits warm; the business submits all the time. The judge allows nothing lost, nothing doubled and
nothing out of order in any of them; a receiver without memory (R3) may leave doubts, and they must be listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zerotail.drill.rehearsal import Rehearsal
from zerotail.lab.fault import cut_link, heal_link
from zerotail.lab.link import BOTH, CutMode

MESSAGES_BEFORE = 1_000
MESSAGES_AFTER = 1_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """A disaster by name."""

    name: str
    summary: str
    play: Callable[[Rehearsal], None]


def _site_loss(stage: Rehearsal) -> None:
    stage.kill_site("east")
    stage.take_over("west")


def _demo(stage: Rehearsal) -> None:
    _site_loss(stage)
    stage.wait_for_more(MESSAGES_AFTER)
    stage.rejoin("east")


def _database_loss(stage: Rehearsal) -> None:
    stage.kill_part("east.postgres")
    stage.take_over("west")


def _zombie_site(stage: Rehearsal) -> None:
    stage.freeze_site("east")
    stage.take_over("west")
    stage.wait_for_more(MESSAGES_AFTER)
    stage.thaw_site("east")


def _link_cut_then_loss(stage: Rehearsal) -> None:
    report = cut_link(stage.layout, BOTH, CutMode.HANG)
    stage.faults.append(report)
    stage.note("fault", f"the link is cut: {'; '.join(report.evidence)}")
    stage.kill_site("east")
    heal_link(stage.layout, BOTH)
    stage.take_over("west")


def _second_loss(stage: Rehearsal) -> None:
    _site_loss(stage)
    stage.wait_for_more(MESSAGES_AFTER)
    stage.rejoin("east")
    stage.start_site("east", standby=True)
    stage.wait_until_says("east", "warm, until")
    stage.kill_site("west")
    stage.take_over("east")


def _handover(stage: Rehearsal) -> None:
    stage.hand_over("west")


def _failback(stage: Rehearsal) -> None:
    stage.hand_over("west")
    stage.wait_for_more(MESSAGES_AFTER)
    stage.hand_over("east")


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("site-loss", "kill -9 of everything of the active site at once; the other one takes over", _site_loss),
        Scenario("demo", "site-loss, and the lost site comes back as standby", _demo),
        Scenario("database-loss", "only the database of the active site is killed", _database_loss),
        Scenario("zombie-site", "the active site freezes, is taken over, and goes on as if nothing were", _zombie_site),
        Scenario("link-cut-then-loss", "the link is cut, then the active site is lost", _link_cut_then_loss),
        Scenario("second-loss-after-takeover", "the survivor is lost, too, after the first came back", _second_loss),
        Scenario("handover-under-load", "the active role moves while instructions come", _handover),
        Scenario("failback-cycle", "there and back again, by handover", _failback),
    )
}
