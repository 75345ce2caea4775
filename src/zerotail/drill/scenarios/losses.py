"""Something is lost: a site, one of its servers, its disks, the standby; and what was on its way is not."""

from __future__ import annotations

from zerotail.core.identity import SiteName
from zerotail.drill import blows
from zerotail.drill.acts import bring_back, hand_over, rejoin, take_over
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario, is_exposed
from zerotail.operate.takeover import Statements


def _site_loss(stage: Rehearsal) -> None:
    lost = stage.active
    blows.kill_site(stage, lost)
    take_over(stage, stage.standby)


def _demo(stage: Rehearsal) -> None:
    lost = stage.active
    _site_loss(stage)
    stage.wait_for_new(MESSAGES)
    bring_back(stage, lost)
    stage.wait_for_new(MESSAGES)
    hand_over(stage, lost)


def _commit_wait(stage: Rehearsal) -> None:
    frozen = blows.freeze_log_receiver(stage, clients=3)
    silent = stage.falls_silent()
    stage.promise("nothing leaves while the standby stores nothing", silent)
    blows.kill_site(stage, stage.active)
    blows.thaw_log_receiver(stage, frozen)
    take_over(stage, stage.standby)


def _cancelled_commit_wait(stage: Rehearsal) -> None:
    frozen = blows.freeze_log_receiver(stage, clients=3)
    blows.cancel_waiting_commits(stage)
    silent = stage.falls_silent()
    stage.promise("nothing leaves that the standby has not stored, though the commits returned", silent)
    blows.kill_site(stage, stage.active)
    blows.thaw_log_receiver(stage, frozen)
    take_over(stage, stage.standby)


def _database_loss(stage: Rehearsal) -> None:
    blows.kill_part(stage, f"{stage.active}.postgres")
    take_over(stage, stage.standby)


def _kafka_loss(stage: Rehearsal) -> None:
    site = stage.active
    fault = blows.lose_broker(stage, site, empty=stage.random.random() < 0.5)
    stage.start_servers(f"{site}.kafka")
    stage.healed(fault, f"{site}.kafka is back")


def _link_cut_then_loss(stage: Rehearsal) -> None:
    fault = blows.cut(stage)
    stage.promise("nothing leaves while the link is cut", stage.falls_silent())
    blows.kill_site(stage, stage.active)
    blows.heal(stage, fault)
    take_over(stage, stage.standby)


def _second_loss(stage: Rehearsal) -> None:
    first = stage.active
    _site_loss(stage)
    stage.wait_for_new(MESSAGES)
    bring_back(stage, first)
    stage.wait_for_new(MESSAGES)
    _site_loss(stage)


def _standby_loss(stage: Rehearsal) -> None:
    lost = stage.standby
    late = blows.freeze_stages(stage)
    fault = blows.kill_site(stage, lost)
    stage.promise("nothing leaves without the standby", stage.falls_silent())
    take_over(stage, stage.active, Statements(lost_site=SiteName(lost)))
    blows.thaw_stages(stage, late)
    stage.wait_for_new(MESSAGES)
    stage.promise("the epoch says that it is exposed", is_exposed(stage))
    stage.start_servers(lost)
    rejoin(stage, lost)
    stage.healed(fault, f"{lost} is the standby again")
    stage.promise("exposure has ended", not is_exposed(stage))


def _both_exposed(stage: Rehearsal) -> None:
    first, second = stage.active, stage.standby
    _standby_loss(stage)
    stage.start_site(second, standby=True)
    stage.wait_until_warm(second)
    stage.wait_for_new(MESSAGES)
    fault = blows.kill_site(stage, first)
    take_over(stage, second)
    stage.promise("the other one is exposed now", is_exposed(stage))
    stage.wait_for_new(MESSAGES)
    rejoin(stage, first)
    stage.healed(fault, f"{first} is the standby now")
    stage.promise("exposure has ended again", not is_exposed(stage))


def _answers_lost(stage: Rehearsal) -> None:
    fault = blows.lose_answers(stage, 2 + stage.random.randrange(4))
    stage.wait_for_new(MESSAGES)
    blows.behave(stage, fault)
    again = blows.lose_answers(stage, 1000)
    blows.kill_site(stage, stage.active)
    blows.behave(stage, again)
    take_over(stage, stage.standby)


def _disk_destroyed(stage: Rehearsal) -> None:
    lost = stage.active
    fault = blows.destroy(stage, lost)
    take_over(stage, stage.standby)
    stage.wait_for_new(MESSAGES)
    bring_back(stage, lost)
    stage.healed(fault, f"{lost} is back, from nothing")


SCENARIOS = (
    Scenario(
        "site-loss",
        "kill -9 of everything of the active site at once; the other one takes over",
        _site_loss,
        ("site-loss",),
    ),
    Scenario(
        "demo",
        "site-loss, the lost site comes back as standby, and gets the active role again",
        _demo,
        ("site-loss",),
    ),
    Scenario(
        "site-loss-during-commit-wait",
        "the standby stores nothing, commits wait, and then the active site is lost",
        _commit_wait,
        ("log-receiver-frozen", "site-loss"),
    ),
    Scenario(
        "cancelled-commit-wait",
        "commits that wait for the standby are cancelled, then the active site is lost",
        _cancelled_commit_wait,
        ("log-receiver-frozen", "commit-wait-cancelled", "site-loss"),
    ),
    Scenario("database-loss", "only the database of the active site is killed", _database_loss, ("kill",)),
    Scenario(
        "kafka-loss",
        "only the Kafka of the active site is lost and comes back, perhaps empty; no role changes",
        _kafka_loss,
        ("kafka-",),
    ),
    Scenario(
        "link-cut-then-loss",
        "the link is cut, then the active site is lost",
        _link_cut_then_loss,
        ("cut hang", "site-loss"),
    ),
    Scenario(
        "second-loss-after-takeover",
        "the survivor is lost, too, after the first came back",
        _second_loss,
        ("site-loss",),
    ),
    Scenario(
        "standby-loss",
        "the standby is lost while stages hang: emission waits, goes on exposed by a statement, and is gated again",
        _standby_loss,
        ("stages-frozen", "site-loss"),
    ),
    Scenario(
        "both-exposed-in-turn",
        "each site works alone for a while, one after the other",
        _both_exposed,
        ("stages-frozen", "site-loss"),
    ),
    Scenario(
        "receiver-loses-answers",
        "the receiver takes messages and its answers are lost; then the active site is lost",
        _answers_lost,
        ("answers-lost", "site-loss"),
    ),
    Scenario(
        "disk-destroyed",
        "the active site is lost with its disks, and comes back from nothing",
        _disk_destroyed,
        ("site-destroyed",),
    ),
)
