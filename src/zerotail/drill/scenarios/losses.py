"""Something is lost: a site, one of its servers, its disks, the standby; and what was on its way is not."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial

from zerotail.core.identity import SiteName
from zerotail.drill import blows
from zerotail.drill.acts import bring_back, hand_over, refusal_of_rejoin, refusal_of_takeover, rejoin, take_over
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.running import EMITTER, FLOW, part_of
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario, is_exposed
from zerotail.lab.connections import connections_to, have_given_up
from zerotail.lab.rollback import keep_snapshot
from zerotail.operate.takeover import Statements

NOTICED_SECONDS = 15.0
"""A host that says nothing any more is noticed in this time."""
_LOOK_SECONDS = 0.1


def _site_loss(rehearsal: Rehearsal) -> None:
    lost = rehearsal.active
    blows.kill_site(rehearsal, lost)
    take_over(rehearsal, rehearsal.standby)


def _demo(rehearsal: Rehearsal) -> None:
    lost = rehearsal.active
    _site_loss(rehearsal)
    rehearsal.wait_for_new(MESSAGES)
    bring_back(rehearsal, lost)
    rehearsal.wait_for_new(MESSAGES)
    hand_over(rehearsal, lost)


def _commit_wait(rehearsal: Rehearsal, *, cancelled: bool = False) -> None:
    frozen = blows.freeze_log_receiver(rehearsal, clients=3)
    if cancelled:
        blows.cancel_waiting_commits(rehearsal)
    silent = rehearsal.falls_silent()
    returned = ", though the commits returned" if cancelled else ""
    rehearsal.promise(f"nothing leaves that the standby has not stored{returned}", silent)
    blows.kill_site(rehearsal, rehearsal.active)
    blows.thaw_log_receiver(rehearsal, frozen)
    take_over(rehearsal, rehearsal.standby)


def _database_loss(rehearsal: Rehearsal) -> None:
    blows.kill_part(rehearsal, f"{rehearsal.active}.postgres")
    take_over(rehearsal, rehearsal.standby)


def _kafka_loss(rehearsal: Rehearsal) -> None:
    site = rehearsal.active
    fault = blows.lose_broker(rehearsal, site, empty=rehearsal.random.random() < 0.5)
    rehearsal.start_servers(f"{site}.kafka")
    rehearsal.healed(fault, f"{site}.kafka is back")


def _link_cut_then_loss(rehearsal: Rehearsal) -> None:
    fault = blows.cut(rehearsal)
    rehearsal.promise("nothing leaves while the link is cut", rehearsal.falls_silent())
    blows.kill_site(rehearsal, rehearsal.active)
    blows.heal(rehearsal, fault)
    take_over(rehearsal, rehearsal.standby)


def _second_loss(rehearsal: Rehearsal) -> None:
    first = rehearsal.active
    _site_loss(rehearsal)
    rehearsal.wait_for_new(MESSAGES)
    bring_back(rehearsal, first)
    rehearsal.wait_for_new(MESSAGES)
    _site_loss(rehearsal)


def _standby_loss(rehearsal: Rehearsal) -> None:
    lost = rehearsal.standby
    late = blows.freeze_stages(rehearsal)
    fault = blows.kill_site(rehearsal, lost)
    rehearsal.promise("nothing leaves without the standby", rehearsal.falls_silent())
    take_over(rehearsal, rehearsal.active, Statements(lost_site=SiteName(lost)))
    blows.thaw_stages(rehearsal, late)
    rehearsal.wait_for_new(MESSAGES)
    rehearsal.promise("the epoch says that it is exposed", is_exposed(rehearsal))
    rehearsal.start_servers(lost)
    rejoin(rehearsal, lost)
    rehearsal.healed(fault, f"{lost} is the standby again")
    rehearsal.promise("exposure has ended", not is_exposed(rehearsal))


def _both_exposed(rehearsal: Rehearsal) -> None:
    first, second = rehearsal.active, rehearsal.standby
    _standby_loss(rehearsal)
    rehearsal.start_site(second, standby=True)
    rehearsal.wait_until_warm(second)
    rehearsal.wait_for_new(MESSAGES)
    fault = blows.kill_site(rehearsal, first)
    take_over(rehearsal, second)
    rehearsal.promise("the other one is exposed now", is_exposed(rehearsal))
    rehearsal.wait_for_new(MESSAGES)
    rejoin(rehearsal, first)
    rehearsal.healed(fault, f"{first} is the standby now")
    rehearsal.promise("exposure has ended again", not is_exposed(rehearsal))


def _snapshot_rollback(rehearsal: Rehearsal) -> None:
    site, complete = rehearsal.active, rehearsal.standby
    keep_snapshot(rehearsal.layout, site)
    rehearsal.note("act", f"a snapshot of {site}'s storage is kept, and its database started anew")
    rehearsal.wait_for_new(MESSAGES)
    fault = blows.roll_back_storage(rehearsal)
    rehearsal.promise("nothing leaves of a log that has lost its end", rehearsal.falls_silent())
    rehearsal.promise("its database takes no rows", not blows.takes_rows(rehearsal, site))
    rehearsal.promise(
        f"{site} does not go on without what {complete} has", refusal_of_takeover(rehearsal, site) == "ZT479"
    )
    rehearsal.promise(f"the copy at {complete} is not replaced", refusal_of_rejoin(rehearsal, complete) == "ZT479")
    take_over(rehearsal, complete)
    rehearsal.wait_for_new(MESSAGES)
    rehearsal.processes[site].change_role()
    rejoin(rehearsal, site)
    rehearsal.healed(fault, f"{site} is the standby, with everything")


def _vanished_host(rehearsal: Rehearsal) -> None:
    site = rehearsal.active
    port, running = rehearsal.layout.database(site).port, rehearsal.processes[site]
    rehearsal.wait_for_new(MESSAGES)
    at_work = {pid: part for pid in running.members() if (part := part_of(pid)) in (EMITTER, FLOW)}
    before = connections_to(port, at_work)
    fault, began = blows.freeze_database(rehearsal, site), time.monotonic()
    noticed: dict[int, float] = {}
    while set(noticed) < set(before) and time.monotonic() - began < NOTICED_SECONDS:
        for pid in have_given_up(before, connections_to(port, at_work)):
            noticed.setdefault(pid, time.monotonic() - began)
        time.sleep(_LOOK_SECONDS)
    told = ", ".join(f"{at_work[pid]} after {noticed[pid]:.1f} s" for pid in sorted(noticed)) or "nobody"
    everybody = {at_work[pid] for pid in noticed} == {EMITTER, FLOW} and set(noticed) == set(before)
    rehearsal.promise(f"every process notices within {NOTICED_SECONDS:g} s ({told})", everybody)
    rehearsal.promise("nothing leaves meanwhile", rehearsal.falls_silent())
    blows.thaw_database(rehearsal, fault)
    rehearsal.wait_for_new(MESSAGES)
    rehearsal.promise("all of them went on, and none was started anew", set(running.members()) >= set(at_work))


def _answers_lost(rehearsal: Rehearsal) -> None:
    fault = blows.lose_answers(rehearsal, 2 + rehearsal.random.randrange(4))
    rehearsal.wait_for_new(MESSAGES)
    blows.behave(rehearsal, fault)
    again = blows.lose_answers(rehearsal, 1000)
    blows.kill_site(rehearsal, rehearsal.active)
    blows.behave(rehearsal, again)
    take_over(rehearsal, rehearsal.standby)


def _disk_destroyed(rehearsal: Rehearsal) -> None:
    lost = rehearsal.active
    fault = blows.destroy(rehearsal, lost)
    take_over(rehearsal, rehearsal.standby)
    rehearsal.wait_for_new(MESSAGES)
    bring_back(rehearsal, lost)
    rehearsal.healed(fault, f"{lost} is back, from nothing")


def _replica_behind(rehearsal: Rehearsal) -> None:
    site, complete = rehearsal.active, rehearsal.standby
    blows.keep_replica(rehearsal)
    rehearsal.wait_for_new(MESSAGES)
    fault = blows.promote_replica(rehearsal)
    rehearsal.promise(
        f"{site} does not go on without what {complete} has", refusal_of_takeover(rehearsal, site) == "ZT470"
    )
    rehearsal.promise(f"the copy at {complete} is not replaced", refusal_of_rejoin(rehearsal, complete) == "ZT471")
    take_over(rehearsal, complete)
    rehearsal.wait_for_new(MESSAGES)
    rehearsal.processes[site].change_role()
    rejoin(rehearsal, site)
    rehearsal.healed(fault, f"{site} is the standby, with everything")


def _stale_copy(rehearsal: Rehearsal) -> None:
    lost, alone = rehearsal.standby, rehearsal.active
    away = blows.kill_site(rehearsal, lost)
    take_over(rehearsal, alone, Statements(lost_site=SiteName(lost)))
    rehearsal.wait_for_new(MESSAGES)
    frozen = blows.freeze_site(rehearsal, alone)
    rehearsal.start_servers(lost)
    said = refusal_of_takeover(rehearsal, lost, timedelta(seconds=1))
    rehearsal.promise(f"nobody goes on with the old copy of {lost} without a word", said in ("ZT474", "ZT475"))
    blows.thaw_site(rehearsal, frozen)
    rehearsal.wait_for_new(MESSAGES)
    rejoin(rehearsal, lost)
    rehearsal.healed(away, f"{lost} is the standby again")
    rehearsal.promise("exposure has ended", not is_exposed(rehearsal))


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
        partial(_commit_wait, cancelled=True),
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
        "replica-behind",
        "a replica inside the active site takes over its database and lacks what the standby has: the standby goes on",
        _replica_behind,
        ("replica-behind",),
    ),
    Scenario(
        "stale-copy",
        "the standby is lost, the other site works alone and stands still: nobody takes the old copy without a word",
        _stale_copy,
        ("site-loss", "freeze"),
    ),
    Scenario(
        "snapshot-rollback",
        "the database of the active site comes back as a snapshot of its storage; the other site takes over",
        _snapshot_rollback,
        ("storage-rolled-back",),
    ),
    Scenario(
        "vanished-host",
        "the database of the active site says nothing any more and comes back: everybody notices, and goes on",
        _vanished_host,
        ("database-vanished",),
    ),
    Scenario(
        "disk-destroyed",
        "the active site is lost with its disks, and comes back from nothing",
        _disk_destroyed,
        ("site-destroyed",),
    ),
)
