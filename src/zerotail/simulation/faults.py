"""Faults of the world, and how they end."""

from __future__ import annotations

from collections.abc import Callable

from zerotail import ports
from zerotail.core.epoch import Durability, works_at
from zerotail.core.gate import Release
from zerotail.core.identity import EmissionNumber, Epoch, Incarnation, Lsn, SiteName, Timeline
from zerotail.core.receiver import ReceiverClass
from zerotail.simulation import plan as plans
from zerotail.simulation.kafka import FOREIGN_RECORD, THEIRS, Log
from zerotail.simulation.operators import Operators
from zerotail.simulation.parts import EAST, OTHER, SITES, Actor
from zerotail.simulation.plan import Fault
from zerotail.simulation.schedule import Schedule
from zerotail.simulation.world import World


class Faults:
    """Applies the faults of a plan to the world, and ends them when their time is over."""

    def __init__(self, world: World, schedule: Schedule, operators: Operators) -> None:
        self.world = world
        self.schedule = schedule
        self.operators = operators
        self.power_off: Callable[[SiteName], None] = lambda _: None
        self.power_on: Callable[[SiteName], None] = lambda _: None

    def apply(self, fault: Fault) -> None:
        """Let a fault happen."""
        kind = fault.kind
        if kind in plans.OPERATOR_ACTS:
            self.operators.act(kind, fault.choice)
            return
        site = self._site(fault)
        if kind.startswith("kafka"):
            self._kafka(fault, site)
        elif kind in (plans.LINK_CUT, plans.LINK_ONE_WAY, plans.OUTSIDE_CUT):
            self._cut(fault, site)
        elif kind == plans.OUTSIDE_OTHERS:
            self._send_of_others(fault)
        elif kind in (plans.SITE_DOWN, plans.SITE_DESTROYED):
            self._site_fault(fault, site)
        else:
            self._database(fault, site)

    def _site(self, fault: Fault) -> SiteName:
        """Mostly the active site: that is where it hurts."""
        return self.world.active if fault.choice % 4 else OTHER[self.world.active]

    def _later(self, fault: Fault, end: Callable[[], None]) -> None:
        self.schedule.at(self.world.time + 20 + fault.length, end)

    def _kafka(self, fault: Fault, site: SiteName) -> None:
        world = self.world
        logs = [log for (of, _, _), log in world.logs.items() if of == site]
        if fault.kind == plans.KAFKA_DOWN:
            world.kafka_up[site] = False
            self._later(fault, lambda: world.kafka_up.__setitem__(site, True))
        elif logs:
            self._log(fault, logs[fault.choice % len(logs)])
        self.schedule.tell(f"{fault.kind} at {site}")

    def _log(self, fault: Fault, log: Log) -> None:
        if fault.kind == plans.KAFKA_TRUNCATE:
            log.truncate(1 + fault.choice % 3)
        elif fault.kind == plans.KAFKA_WIPE:
            log.wipe(self.world.new_log_identity())
        elif fault.kind == plans.KAFKA_RETAIN:
            log.retain(1 + fault.choice % 5)
        elif fault.kind == plans.KAFKA_MARK:
            log.mark()
        elif fault.kind == plans.KAFKA_FOREIGN:
            log.records.append(FOREIGN_RECORD)
        elif fault.kind == plans.KAFKA_OTHERS:
            log.append_of_others(fault.choice % 3)
        elif fault.kind == plans.KAFKA_SPOILS:
            log.spoils = self.operators.attentive  # nobody else gets the partition going again
        elif log.records:
            log.records += log.records[-1 - fault.choice % 3 :]

    def _send_of_others(self, fault: Fault) -> None:
        """Another installation claims a receiver of ours, as a newer sender would, and sends what would come next.
        One of class R3 takes whatever comes, and one that nobody has used yet would belong to who came first.
        """
        world = self.world
        lane, receiver = list(world.receivers.items())[fault.choice % len(world.receivers)]
        if not receiver.accepted or receiver.receiver is ReceiverClass.R3:
            return
        self.schedule.tell(f"{fault.kind}: {lane.channel}/{lane.partition}")
        world.moment += 1
        writer, name = Actor(EAST), (lane, Epoch(1 << 40), Incarnation(1))
        receiver.claimed(world.moment, writer, ports.ClaimAtReceiver(*name, THEIRS.outside))
        number = EmissionNumber(receiver.last + 1)
        release = Release(world.servers[EAST].standing().asker, Lsn(0), None)
        batch = ports.SendEmissions(*name, number, (b'"theirs"',), number, release, THEIRS.outside)
        receiver.arrived(world.moment, writer, batch)
        self.schedule.mark("another installation sent to a receiver")

    def _cut(self, fault: Fault, site: SiteName) -> None:
        world = self.world
        if fault.kind == plans.OUTSIDE_CUT:
            world.outside_up[site] = False
            self._later(fault, lambda: world.outside_up.__setitem__(site, True))
        else:
            pairs = [(site, OTHER[site])]
            if fault.kind == plans.LINK_CUT:
                pairs.append((OTHER[site], site))
            for pair in pairs:
                world.link_up[pair] = False
            self._later(fault, lambda: world.link_up.update(dict.fromkeys(pairs, True)))
        self.schedule.tell(f"{fault.kind}: {site}")

    def _site_fault(self, fault: Fault, site: SiteName) -> None:
        if fault.kind == plans.SITE_DESTROYED:
            if not self.may_destroy(site):
                return
            self.world.destroyed.add(site)
            self.schedule.mark("site destroyed")
            for (of, _, _), log in self.world.logs.items():
                if of == site:
                    log.wipe(self.world.new_log_identity())
        self.schedule.tell(f"{fault.kind}: {site}")
        self.power_off(site)
        self._later(fault, lambda: self.power_on(site))

    def may_destroy(self, site: SiteName) -> bool:
        """Whether the other site holds everything that was sent: at most one site is lost at a time."""
        world = self.world
        if world.destroyed:
            return False
        if site != world.active:
            # A replica may have taken over there that lacks what only this one has.
            there = world.servers[OTHER[site]]
            return there.common_prefix(world.servers[site]) == len(world.servers[site].log)
        server, other = world.servers[site], world.servers[OTHER[site]]
        return (
            not server.in_recovery
            and world.out is None
            and server.lineage.current.durability is Durability.GATED
            and other.in_recovery
            and other.follows(server)
            and other.standing().lineage.current.durability is Durability.GATED
        )

    def _database(self, fault: Fault, site: SiteName) -> None:
        server = self.world.servers[site]
        if fault.kind == plans.DB_ANOTHER:
            self._answer_by_another(fault)
            return
        if not server.up or not self.world.site_up[site]:
            return
        self.schedule.tell(f"{fault.kind}: {site}")
        if fault.kind == plans.DB_RESTART:
            server.crash()
            self._later(fault, lambda: self._start(site))
        elif fault.kind == plans.DB_NAMES:
            if server.waiting:
                self.schedule.mark("rows shown by emptied names")
            server.empty_names()
            self._later(fault, lambda: self._restore_names(site))
        elif fault.kind == plans.DB_ROLLBACK:
            self._roll_back(fault, site)
        elif fault.kind in (plans.DB_FAILOVER, plans.DB_REPLICA):
            self._fail_over(fault, site)
        elif server.waiting:
            self.schedule.mark("row shown before it was replicated")
            waiting = server.waiting[fault.choice % len(server.waiting)]
            if fault.kind == plans.DB_CANCEL:
                server.cancel(waiting)
            else:
                server.terminate(waiting)

    def _answer_by_another(self, fault: Fault) -> None:
        """For a while the standby that is found under the other site's address is not the one that was looked at."""
        lagging, site = self.world.lagging, OTHER[self.world.active]
        self.schedule.tell(f"{fault.kind}: {site}")
        lagging[site] = 1 + fault.choice % 4
        self._later(fault, lambda: lagging.update({site: 0}))

    def _restore_names(self, site: SiteName) -> None:
        """Commits wait again, where there is a standby to wait for."""
        server = self.world.servers[site]
        if not server.in_recovery and server.lineage.current.durability is Durability.GATED:
            server.names = self.world.synchronous

    def _start(self, site: SiteName) -> None:
        world = self.world
        if world.site_up[site] and site not in world.destroyed and not world.servers[site].up:
            world.servers[site].start()

    def _fail_over(self, fault: Fault, site: SiteName) -> None:
        """A replica inside the site takes over. It may lack anything, also what the other site has: unless there is no
        other copy, for then nobody could bring it back.
        """
        server, other = self.world.servers[site], self.world.servers[OTHER[site]]
        if server.in_recovery or self.lacks_its_end(site):
            return
        shared = server.common_prefix(other)
        least = 1
        if other.site in self.world.destroyed:
            least = shared
        if server.lineage.current.durability is Durability.EXPOSED or self._opening_alone(site):
            least = len(server.log)
        if fault.choice % 3:  # most replicas are not far behind
            least = max(least, shared)
        keep = least + fault.choice // 3 % (len(server.log) - least + 1)
        if keep < len(server.log):
            self.schedule.mark("rows lost by a failover inside a site")
        if keep < shared:
            self.schedule.mark("a replica lacks what the other site has")
        if fault.kind == plans.DB_FAILOVER:
            server.fail_over_inside(keep)
            return
        server.become_replica(keep)
        self.schedule.mark("a replica waits to be promoted")
        self._later(fault, lambda: self._promote_inside(site))

    def _promote_inside(self, site: SiteName) -> None:
        """By whoever runs the site; one that was replaced or taken over meanwhile is none of his any more."""
        server = self.world.servers[site]
        if self._is_replica(site):
            server.promote_inside()

    def _is_replica(self, site: SiteName) -> bool:
        server = self.world.servers[site]
        return server.in_recovery and server.source is None and site not in self.world.destroyed

    def _roll_back(self, fault: Fault, site: SiteName) -> None:
        """The storage of a primary comes back as it was, on the same timeline, without something that its other site
        has. (What nobody else has cannot be missed: rows of that kind need an epoch of their own to be told apart.)
        """
        server, other = self.world.servers[site], self.world.servers[OTHER[site]]
        if server.in_recovery or not other.follows(server) or self.world.out is not None:
            return
        if not works_at(server.lineage, site, Timeline(server.timeline)) or other.site in self.world.destroyed:
            return
        if server.lineage.current.durability is Durability.EXPOSED:
            return
        tables = [{write[1] for write in entry.writes} for entry in server.log]
        least = 1 + max(place for place, written in enumerate(tables) if "lineage" in written)
        keep = max(least, len(other.log) - 1 - fault.choice % 12)
        if keep < len(other.log):
            self.schedule.mark("log rolled back behind the other site's")
            server.roll_back(keep)

    def lacks_its_end(self, site: SiteName) -> bool:
        """Whether the other site holds what this site's database has lost."""
        server, other = self.world.servers[site], self.world.servers[OTHER[site]]
        return server.standing().waits_for_life and server.common_prefix(other) < len(other.log)

    def _opening_alone(self, site: SiteName) -> bool:
        """Promoted and not yet in an epoch of its own: there is no other copy to compare with."""
        server = self.world.servers[site]
        return server.lineage.current.site != site

    def end_all(self) -> None:
        """Heal everything that can be healed without an operator."""
        world = self.world
        for site in SITES:
            if not world.site_up[site]:
                self.power_on(site)
            if not world.servers[site].up and site not in world.destroyed:
                world.servers[site].start()
            world.kafka_up[site] = world.outside_up[site] = True
        for pair in world.link_up:
            world.link_up[pair] = True
        world.lagging.clear()
        for site in SITES:
            self._promote_inside(site)
        for process in self.schedule.processes:
            if process.frozen_until > world.time + 400:
                process.frozen_until = world.time + 400
                self.schedule.at(process.frozen_until, process)
