"""Operators: people who act late, twice, at both sites, and get killed half way; but who keep a notebook.

They know which site went on last (`world.active`) and which one they have declared out (`world.out`); they
never take over at a site that is out. That much is assumed of people; everything else is left to the
protocol, and to chance. In some runs they are wrong about it: then two sites go on alone, and no receiver
that remembers claims may take messages of both without an alarm (I21). In others they have lost the notebook, and take
over wherever a plan lets them: it asks the receivers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from zerotail import ports
from zerotail.core import staleness
from zerotail.core.completeness import find_beyond, may_hold_more
from zerotail.core.emission import Lane
from zerotail.core.epoch import Durability, Phase, works_at
from zerotail.core.identity import EmissionNumber, PartitionNumber, SiteName, StageName, Timeline
from zerotail.core.poison import Decision, Poison, Remedy
from zerotail.core.receiver import DoubtPolicy
from zerotail.errors import Refused
from zerotail.failover.handover import hand_over
from zerotail.failover.rejoin import rejoin
from zerotail.failover.takeover import expose, take_over
from zerotail.handler import encode_value
from zerotail.simulation import plan as plans
from zerotail.simulation.parts import NUMBER, OTHER, SITES, Actor
from zerotail.simulation.schedule import Process, Schedule
from zerotail.simulation.topology import IN_APPLY, Ledger
from zerotail.simulation.world import World

_DELAYS = (1, 20, 200, 500, 900, 1400)
"""Of decisions about records that stopped a partition, in ticks."""


class Operators:
    """Starts the commands of operators as processes."""

    def __init__(self, world: World, schedule: Schedule) -> None:
        self.world = world
        self.schedule = schedule
        self.errant = False
        """Whether they are wrong about which site is out."""
        self.forgetful = False
        """Whether they do not know which site went on last, and rely on what a plan says."""
        self.power_on: Callable[[SiteName], None] = lambda _: None
        self.attentive = False
        """Whether they decide about records that stop a partition; else it stays stopped, for whoever runs it."""
        self.random = Random(0)  # noqa: S311
        """By which they decide about records that stopped a partition."""
        self.busy: dict[str, Process] = {}
        """Commands that run, by name; in the healed phase there is one of each kind at most."""

    def act(self, kind: str, choice: int) -> None:
        """Do what the plan says, if a sane operator would."""
        world = self.world
        active, standby = world.active, OTHER[world.active]
        if kind == plans.TAKEOVER:
            self.take_over(standby if choice % 4 else active)
            if choice % 8 == 1:
                self.take_over(standby)
        elif kind == plans.TAKEOVER_BOTH:
            self.take_over(active)
            self.take_over(standby)
        elif kind == plans.HANDOVER:
            self.hand_over()
        elif kind == plans.REJOIN:
            self.rejoin()
        elif kind == plans.EXPOSE:
            self.expose()

    def _run(self, name: str, site: SiteName, story: ports.Story[Any]) -> None:
        process = Process(f"operator {name} at {site}", 900 + NUMBER[site], site, story)
        self.busy[name] = process
        self.schedule.start(process)

    def running(self, name: str) -> bool:
        """Whether a command is still at work."""
        return self.busy.get(name) in self.schedule.processes

    def take_over(self, site: SiteName) -> None:
        """Take over at a site, unless it was declared out."""
        if not self.world.site_up[site]:
            return
        if self.world.out == site and not self.errant and not self._may_take_over_old_copy(site):
            return
        topology = self.world.topology
        story = take_over(
            topology.pipeline, site, NUMBER[site], OTHER[site], accept_loss=self._knows_that_it_is_complete(site)
        )
        self._run(f"takeover {site}", site, story)

    def _may_take_over_old_copy(self, site: SiteName) -> bool:
        """Whether a plan lets somebody take over who does not know that the other site went on alone. Receivers know
        it, those that heard of it: nobody else can tell, and so he waits until all of them have.
        """
        world, alone = self.world, self.world.servers[OTHER[site]].lineage.current
        claims = {lane: receiver.claim for lane, receiver in world.receivers.items()}
        if not self.forgetful or (alone.durability, alone.phase) != (Durability.EXPOSED, Phase.LIVE):
            return False
        known = {lane.channel: claim[0] for lane, claim in claims.items() if claim and claim[0] == alone.epoch}
        if any(claim is None or claim[0] != alone.epoch for claim in claims.values()):
            return False
        try:
            staleness.require_not_superseded(site, world.servers[site].lineage, known, accept_loss=False)
        except Refused:
            self.schedule.mark("a copy that is out of date was refused")
            return False
        return True

    def _other_is_complete(self, active: SiteName) -> bool:
        """Whether the other site's copy has something that the active site lost inside itself, as a plan says."""
        here, there = self.world.servers[active], self.world.servers[OTHER[active]]
        timeline = None if here.in_recovery else Timeline(here.timeline)
        if not there.in_recovery and not here.in_recovery and there.lineage.current.site != active:
            return False
        if find_beyond(there.lineage, here.lineage) is not None:
            return True
        copied = None if there.in_recovery else Timeline(there.timeline)
        if not may_hold_more(there.lineage, copied, here.lineage, active, timeline):
            return False
        compared = self.world.execute(Actor(active), ports.CompareCopies(OTHER[active], active))
        return isinstance(compared, ports.CopiesCompared) and not compared.surplus.nothing

    def _knows_that_it_is_complete(self, site: SiteName) -> bool:
        """Whether a replica took over inside a site that works alone: here it has all that was sent, and its operator
        knows it. Nobody else can tell.
        """
        server = self.world.servers[site]
        row = server.lineage.current
        return row.site == site and row.durability is Durability.EXPOSED and not server.in_recovery

    def hand_over(self) -> None:
        """Move the active role to the other site."""
        source = self.world.active
        target = OTHER[source]
        if self.world.out != target and self.world.site_up[target]:
            story = hand_over(self.world.topology.pipeline, source, target, NUMBER[target])
            self._run("handover", target, story)

    def rejoin(self) -> None:
        """Bring the other site back as standby."""
        active = self.world.active
        if self.world.site_up[active]:
            lost = OTHER[active] in self.world.destroyed
            self._run("rejoin", active, rejoin(OTHER[active], active, database_lost=lost))

    def expose(self) -> None:
        """Go on alone: only while the other site is really out and nobody has promoted it; it is kept out
        then.
        """
        active, other = self.world.active, OTHER[self.world.active]
        is_out = not self.world.site_up[other] and self.world.servers[other].in_recovery
        if self._lacks_its_end(active):
            return
        if self.world.site_up[active] and (is_out or self.errant):
            self.world.out = other
            story = expose(self.world.topology.pipeline, active, NUMBER[active], other)
            self._run("expose", active, story)

    def _lacks_its_end(self, active: SiteName) -> bool:
        """Whether the other site holds what the active one has lost: as `status` says, there is one way out."""
        server, other = self.world.servers[active], self.world.servers[OTHER[active]]
        return server.standing().waits_for_life and server.common_prefix(other) < len(other.log)

    def settle(self) -> None:
        """Decide about doubts by looking at the receiver, when no earlier sender can be alive any more."""
        world = self.world
        server = world.servers[world.active]
        if server.in_recovery or not server.up or world.topology.policy is not DoubtPolicy.HOLD:
            return
        for lane, receiver in world.receivers.items():
            row = server.table("lanes").get(lane)
            if row is None or row[3] == row[2] or self._sender_frozen(lane):
                continue
            known = max([row[2], *(one.number for one in receiver.accepted if one.number <= row[3])])
            settled = world.execute(Actor(world.active), ports.SettleDoubts(lane, EmissionNumber(known)))
            if isinstance(settled, ports.Done):
                self.schedule.mark("doubt settled by an operator")

    def _sender_frozen(self, lane: Lane) -> bool:
        """Whether a sender that is believed dead could still wake up: an operator makes sure before
        settling.
        """
        name = f"emitter {lane.channel}/{lane.partition} "
        senders = [process for process in self.schedule.processes if process.name.startswith(name)]
        return any(process.frozen_until > self.world.time for process in senders) or len(senders) > 1

    # Records that stopped a partition.

    def look_at_poison(self) -> int:
        """Look at a site, mostly the active one; decide later about what was seen, twice. When to look again."""
        world, random = self.world, self.random
        site = world.active if random.randrange(8) else OTHER[world.active]
        for place, seen in self._stopped(site):
            decision = self._remedy(seen)
            for delay in random.sample(_DELAYS, 2):
                self.schedule.at(world.time + delay, partial(self._decide, place, seen, decision))
        return random.choice((30, 60, 200))

    def decide_all(self) -> None:
        """Once every partition that has not stopped is done: no other one has to wait for them."""
        world = self.world
        server = world.servers[world.active]
        stopped = self._stopped(world.active)
        places = [place for place, _ in stopped]
        others = [feed for feed in world.topology.feeds if (feed.consumer, feed.partition) not in places]
        if not any(world.waiting(server, feed) for feed in others):
            for place, seen in stopped:
                self._decide(place, seen, self._remedy(seen))

    def _stopped(self, site: SiteName) -> list[tuple[tuple[StageName, PartitionNumber], Poison]]:
        server = self.world.servers[site]
        if not server.up or not self.world.site_up[site]:
            return []
        heads = server.tables["heads"]
        return [
            (key[:2], row)
            for key, row in server.table("poison").items()
            if isinstance(row, Poison) and row.serial > heads[key[:2]].vector[row.producer]
        ]

    def _remedy(self, seen: Poison) -> Decision | None:
        """Try again, perhaps with repaired code; skip; or replace, perhaps by something no better."""
        random = self.random
        chosen = random.randrange(6)
        if chosen < 2:
            if chosen == 0 or self.schedule.healed:
                for stage in self.world.topology.stages:
                    if isinstance(stage.handler, Ledger):
                        stage.handler.repaired = True
            return None
        if chosen < 4:
            return Decision(Remedy.SKIP, seen.digest)
        flaw = [IN_APPLY] if random.randrange(4) == 0 else []
        return Decision(
            Remedy.REPLACE, seen.digest, encode_value([random.randrange(3), random.randrange(1, 100), *flaw])
        )

    def _decide(self, place: tuple[StageName, PartitionNumber], seen: Poison, decision: Decision | None) -> None:
        """Say so at the site that is active by now; what was seen may have been seen elsewhere."""
        site = self.world.active
        answer = self.world.decide_poison(Actor(site), place, seen, decision)
        if isinstance(answer, ports.Done):
            word = "retry" if decision is None else decision.remedy.value
            self.schedule.mark(f"poison: {word}")
            self.schedule.tell(f"operator at {site}: {word} {seen.producer}:{seen.serial} of {place[0]}/{place[1]}")

    # When everything is healed.

    def heal(self, wish: str) -> None:
        """One look of an operator who brings everything back, one command at a time."""
        world = self.world
        self.settle()
        if self.attentive:
            self.decide_all()
        if any(self.running(name) for name in self.busy):
            return
        active, standby = world.active, OTHER[world.active]
        for site in SITES:
            if not world.site_up[site]:
                self.power_on(site)
        if active in world.destroyed:
            self.take_over(standby)
            return
        server, other = world.servers[active], world.servers[standby]
        if not server.up:
            server.start()
            return
        if not other.up and standby not in world.destroyed:
            other.start()
        follows = other.in_recovery and other.follows(server) and standby not in world.destroyed
        if server.standing().waits_for_life and not follows and standby not in world.destroyed:
            self.take_over(standby)
            return
        lineage = server.lineage
        if not works_at(lineage, active, None if server.in_recovery else Timeline(server.timeline)) or (
            lineage.current.phase is Phase.OPENED  # one that drains goes on by itself when nobody drains it any more
        ):
            waits_for_standby = works_at(lineage, active, Timeline(server.timeline)) and not follows
            if self._other_is_complete(active):
                world.out = None  # going on without it was refused, or has not begun
                self.take_over(standby)
            elif waits_for_standby:
                self.rejoin()
            else:
                self.take_over(active)
            return
        if lineage.current.durability is Durability.EXPOSED or not follows:
            self.rejoin()
            return
        world.out = None
        if wish == plans.HANDOVER and self.busy.get("handover") is None:
            self.hand_over()
        elif wish == plans.TAKEOVER and self.busy.get(f"takeover {standby}") is None:
            self.take_over(standby)
