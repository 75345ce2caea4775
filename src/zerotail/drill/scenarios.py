"""What is rehearsed. Each scenario is a story on the rehearsal's stage, and says beforehand what may be found.

One site is active, the other waits warm; the business submits all the time. Nothing lost, nothing doubled and nothing
out of order is allowed in any of them. A receiver without memory (R3) may leave doubts; each must be listed, and only
a listed number may arrive once more or late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline
from zerotail.drill import blows
from zerotail.drill.acts import bring_back, hand_over, rejoin, take_over
from zerotail.drill.commands import (
    TAKEOVER_STEPS,
    ask_for_takeover,
    call,
    kill_takeover_at,
    plan_of_takeover,
    resume_takeover,
)
from zerotail.drill.rehearsal import Rehearsal
from zerotail.operate.takeover import Statements
from zerotail.ports import End
from zerotail.postgres.connection import session
from zerotail.postgres.lineage import read_standing

MESSAGES = 500
"""So many new ones show that the flow goes on."""
SUPERSEDED = End.SUPERSEDED.value
_END_SECONDS = 5.0
_DECLINED = frozenset({3, 4, 5})
"""Exit codes of an act that was refused, got no answer, or lost against another one half way."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A disaster by name."""

    name: str
    summary: str
    play: Callable[[Rehearsal], None]
    faults: tuple[str, ...] = ()
    """What must have bitten; empty for a planned change of roles."""
    replayed: bool = False
    """The state is rebuilt from the journal at a takeover."""

    @property
    def allowed(self) -> str:
        """What may be found, by receiver class."""
        return "R0, R1, R2: nothing lost, duplicated, reordered or in doubt; R3: listed doubts only"


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


def _zombie_site(stage: Rehearsal) -> None:
    zombie = stage.active
    detained = blows.detain_message(stage)
    frozen = blows.freeze_site(stage, zombie)

    def hear(step: str, done: bool) -> None:
        if (step, done) == ("claim lanes", True):
            blows.let_message_arrive(stage, detained)

    take_over(stage, stage.standby, hear=hear)
    stage.wait_for_new(MESSAGES)
    blows.thaw_site(stage, frozen)
    if stage.layout.receiver_class == "R2":  # the only one that tells an old sender that it is old
        ended = stage.processes[zombie].says_within(_END_SECONDS, SUPERSEDED)
        stage.promise("the sender that was frozen ends by itself within 5 s", ended)
    stage.wait_for_new(MESSAGES)


def _link_cut_then_loss(stage: Rehearsal) -> None:
    fault = blows.cut(stage)
    stage.promise("nothing leaves while the link is cut", stage.falls_silent())
    blows.kill_site(stage, stage.active)
    blows.heal(stage, fault)
    take_over(stage, stage.standby)


def _killed_at_every_step(stage: Rehearsal) -> None:
    to = stage.standby
    blows.kill_site(stage, stage.active)
    lost_at, stage.asked_at = stage.fault_at, stage.events[-1].at
    for step in TAKEOVER_STEPS:
        for when in ("begin", "done"):
            kill_takeover_at(stage, to, step, when)
    status = call(stage, to, "takeover", "status").wait()
    stage.promise("a takeover that was killed shows as unfinished", status.code == 1)
    stage.fault_at = lost_at
    ended = resume_takeover(stage, to)
    stage.promise("resume finishes it", ended.code == 0)
    stage.active = to


def _second_loss(stage: Rehearsal) -> None:
    first = stage.active
    _site_loss(stage)
    stage.wait_for_new(MESSAGES)
    bring_back(stage, first)
    stage.wait_for_new(MESSAGES)
    _site_loss(stage)


def _handover(stage: Rehearsal) -> None:
    hand_over(stage, stage.standby)


def _failback(stage: Rehearsal) -> None:
    first = stage.active
    hand_over(stage, stage.standby)
    stage.wait_for_new(MESSAGES)
    stage.processes[first].end()
    stage.start_site(first, standby=True)
    stage.wait_until_warm(first)
    hand_over(stage, first)


def _operator_twice(stage: Rehearsal) -> None:
    """The link is cut; each site's operator asks for a takeover, at the standby two of them at once."""
    active, standby = stage.active, stage.standby
    fault = blows.cut(stage)
    plan = plan_of_takeover(stage, standby)
    stage.asked_at = stage.note("act", f"takeover asked for at {standby} by two operators, and at {active}, at once")
    notes = [stage.layout.path / f"notes-{number}" for number in (1, 2)]
    asked = [ask_for_takeover(stage, standby, plan, folder) for folder in notes]
    at_home = call(stage, active, "takeover", "run", "--to", active, state=stage.layout.path / "notes-3").wait()
    ended = [one.wait() for one in asked]
    won = [one for one in ended if one.code == 0 and one.said.get("changed")]
    told = ", ".join(f"{one.code} {one.said.get('code', '')}".strip() for one in (*ended, at_home))
    stage.note("act", f"they ended with {told}")
    stage.promise("exactly one takeover is carried out", len(won) == 1)
    declined = [one for one in ended if one.code in _DECLINED or (one.code == 0 and not one.said.get("changed"))]
    stage.promise("the other one is declined with a documented exit code", len(declined) == 1)
    stage.promise("the active site has nothing to take over", at_home.code == 0 and not at_home.said.get("changed"))
    stage.active = standby
    blows.heal(stage, fault)
    alone = call(stage, active, "takeover", "plan", "--to", active, "--accept-lost-site", standby).wait()
    stage.promise(f"{active} may not go on alone while {standby} answers", alone.code == 3)


def _standby_loss(stage: Rehearsal) -> None:
    lost = stage.standby
    late = blows.freeze_stages(stage)
    fault = blows.kill_site(stage, lost)
    stage.promise("nothing leaves without the standby", stage.falls_silent())
    take_over(stage, stage.active, Statements(lost_site=SiteName(lost)))
    blows.thaw_stages(stage, late)
    stage.wait_for_new(MESSAGES)
    stage.promise("the epoch says that it is exposed", _is_exposed(stage))
    stage.start_servers(lost)
    rejoin(stage, lost)
    stage.healed(fault, f"{lost} is the standby again")
    stage.promise("exposure has ended", not _is_exposed(stage))


def _both_exposed(stage: Rehearsal) -> None:
    first, second = stage.active, stage.standby
    _standby_loss(stage)
    stage.start_site(second, standby=True)
    stage.wait_until_warm(second)
    stage.wait_for_new(MESSAGES)
    fault = blows.kill_site(stage, first)
    take_over(stage, second)
    stage.promise("the other one is exposed now", _is_exposed(stage))
    stage.wait_for_new(MESSAGES)
    rejoin(stage, first)
    stage.healed(fault, f"{first} is the standby now")
    stage.promise("exposure has ended again", not _is_exposed(stage))


def _frozen_sender(stage: Rehearsal) -> None:
    home = stage.active
    detained = blows.detain_message(stage)
    frozen = blows.freeze_senders(stage, home)
    blows.kill_part(stage, home)
    take_over(stage, stage.standby)
    stage.wait_for_new(MESSAGES)
    bring_back(stage, home)
    hand_over(stage, home)
    stage.wait_for_new(MESSAGES)
    blows.thaw_senders(stage, frozen)
    blows.let_message_arrive(stage, detained)
    ended = stage.strays[-1].says_within(2 * _END_SECONDS, SUPERSEDED)
    stage.promise("the processes that were frozen end by themselves", ended)
    stage.end_strays()
    stage.wait_for_new(MESSAGES)


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


def _is_exposed(stage: Rehearsal) -> bool:
    with session(stage.database, Deadline.after(5)) as connection:
        return read_standing(connection).lineage.current.durability.value == "exposed"


SCENARIOS = {
    one.name: one
    for one in (
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
            "zombie-site",
            "the active site freezes with a message on the wire, is taken over, and goes on as if nothing were",
            _zombie_site,
            ("message-detained", "freeze"),
        ),
        Scenario(
            "takeover-killed-at-every-step",
            "kill -9 of the takeover before and behind each of its steps, then resume",
            _killed_at_every_step,
            ("site-loss", "takeover-killed"),
            replayed=True,
        ),
        Scenario(
            "second-loss-after-takeover",
            "the survivor is lost, too, after the first came back",
            _second_loss,
            ("site-loss",),
        ),
        Scenario("handover-under-load", "the active role moves while instructions come", _handover),
        Scenario("failback-cycle", "there and back again, by handover", _failback),
        Scenario(
            "operator-twice",
            "a takeover is asked for at both sites, and twice at once at one of them",
            _operator_twice,
            ("cut hang",),
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
            "frozen-sender-after-failback",
            "processes that were frozen before a takeover go on after the failback",
            _frozen_sender,
            ("message-detained", "freeze", "kill"),
        ),
        Scenario(
            "receiver-loses-answers",
            "the receiver takes messages and its answers are lost; then the active site is lost",
            _answers_lost,
            ("answers-lost", "site-loss"),
        ),
        Scenario(
            "cancelled-commit-wait",
            "commits that wait for the standby are cancelled, then the active site is lost",
            _cancelled_commit_wait,
            ("log-receiver-frozen", "commit-wait-cancelled", "site-loss"),
        ),
        Scenario(
            "disk-destroyed",
            "the active site is lost with its disks, and comes back from nothing",
            _disk_destroyed,
            ("site-destroyed",),
        ),
    )
}
