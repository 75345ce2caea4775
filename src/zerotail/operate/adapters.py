"""The effects of the bad day on real servers, carried out from one site with a view of both.

1. An effect that names a site goes to that site's database; every question has its patience, since a frozen server
   accepts a connection and is silent.
2. What only an operator can do (shut a site off, stop a server, make a copy) is a command of the configuration. Where
   there is none, nothing is done and the answer says so.
3. The tables of a database that is to be replaced stay locked from the moment its tail is kept until it stops: see
   `postgres.tail`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any, Protocol, TypeVar

from zerotail import ports
from zerotail.channel.configured import open_receiver
from zerotail.channel.contained import Contained
from zerotail.channel.receiver import Receiver
from zerotail.config import Configuration
from zerotail.core.emission import Lane
from zerotail.core.epoch import Durability, Phase, topic_at
from zerotail.core.identity import Epoch, Lsn, SiteName
from zerotail.core.standby import written
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused, Unavailable, Unfinished
from zerotail.flow.stage import Stage
from zerotail.kafka.end import LogEnds
from zerotail.operate.command import ATTACH_SECONDS, COMMAND_SECONDS, run_command
from zerotail.operate.pipeline import transforms_of
from zerotail.postgres import failover, lineage, outbox, owed, promotion, shutdown, tail
from zerotail.postgres.completeness import compare_copies
from zerotail.postgres.connection import Connection, answers, one_row
from zerotail.postgres.synchronous import is_streaming, set_synchronous_standby
from zerotail.postgres.transaction import Session, session_within
from zerotail.postgres.way_in import ShutWayIn
from zerotail.running.prepare import adapter_settings, cluster_of, topics_of
from zerotail.wiring import SiteAdapters

T = TypeVar("T")
_CONNECT_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0
_READING_SECONDS = 60.0
"""For one piece of the journal."""
_PROMOTION_SECONDS = 60.0
_END_SECONDS = 15.0
"""A standby that is slow may have to apply much before it comes to the end of the log."""


class Notes(Protocol):
    """Where an act writes down what it does."""

    @property
    def folder(self) -> Path:
        """Where files are kept."""
        ...

    def step_done(self, epoch: Epoch, step: int) -> list[tuple[int, datetime]]:
        """Note a step; all that are noted for this epoch, with their times."""
        ...

    def stopping(self, position: Lsn | None) -> None:
        """Note up to where the log of a primary reached before it was told to stop; None: it goes on."""
        ...

    def kept(self, kept: tail.Tail) -> None:
        """Note where a tail was kept."""
        ...

    def remark(self, text: str) -> None:
        """Something that the operator should know."""
        ...


@dataclass(frozen=True, slots=True)
class NoNotes:
    """For processes that change no roles, such as a follower."""

    folder: Path = Path()

    def step_done(self, epoch: Epoch, step: int) -> list[tuple[int, datetime]]:  # noqa: ARG002
        """Nothing is noted."""
        return []

    def stopping(self, position: Lsn | None) -> None:
        """Nothing is noted."""

    def kept(self, kept: tail.Tail) -> None:
        """Nothing is noted."""

    def remark(self, text: str) -> None:
        """Nothing is noted."""


class BadDayAdapters(SiteAdapters):
    """Carries out the effects of the normal day and of the bad one."""

    def __init__(self, configuration: Configuration, site: SiteName, notes: Notes | None = None) -> None:
        super().__init__(
            adapter_settings(configuration, site), transforms_of(configuration), patience_seconds=_READING_SECONDS
        )
        self._configuration = configuration
        self._site = site
        self._notes = notes or NoNotes()
        self._dsns = {name: settings.database.dsn.reveal() for name, settings in configuration.sites.items()}
        self._sessions = {
            name: Session(dsn, patience_seconds=_PATIENCE_SECONDS, connect_seconds=_CONNECT_SECONDS)
            for name, dsn in self._dsns.items()
        }
        self._ends = LogEnds(cluster_of(configuration, site), topics_of(configuration))
        self._lane_receivers: dict[Lane, Receiver] = {}
        self._locked: tail.LockedDatabase | None = None
        self._shut: ShutWayIn | None = None
        self._opening: Thread | None = None
        self._carry_out |= {
            ports.ObserveSite: lambda e: self._read(e.site, failover.observe_site),
            ports.CompareCopies: self._compare_copies,
            ports.FenceSite: self._fence,
            ports.Promote: self._promote,
            ports.StopWaiting: lambda e: _answered(
                lambda: failover.stop_waiting(self._dsns[e.site], Deadline.after(_PATIENCE_SECONDS))
            ),
            ports.ClaimLane: lambda e: self._write(site, lambda c: outbox.claim_lane(c, e, site)),
            ports.OpenEpoch: lambda e: self._write(e.site, lambda c: lineage.open_epoch(c, e)),
            ports.ChangeEpoch: self._change_epoch,
            ports.StoreStart: lambda e: self._write(e.site, lambda c: failover.store_start(c, e)),
            ports.ReadLogEnd: self._read_end,
            ports.RestoreTopic: self._restore_topic,
            ports.RecordStep: self._record_step,
            ports.ObserveDrained: self._observe_drained,
            ports.ShutDown: self._shut_down,
            ports.KeepTail: self._keep_tail,
            ports.CopyDatabase: self._copy_database,
            ports.RecordRejoined: lambda e: self._write(e.site, lambda c: failover.record_rejoined(c, e)),
        }

    def open_logs(self, stages: Sequence[Stage]) -> None:
        """Connect to Kafka beside what comes first: its clients take most of a second until they may read and send."""
        self._opening = Thread(target=self._open_logs, args=(stages,), name="open logs", daemon=True)
        self._opening.start()

    def _open_logs(self, stages: Sequence[Stage]) -> None:
        with suppress(Unavailable):
            # A session of its own: this is another thread.
            with session_within(self._dsns[self._site], Deadline.after(_PATIENCE_SECONDS)) as connection:
                standing = lineage.read_standing(connection)
            rejoined = standing.rejoined.get(self._site)
            self._sender.open()
            for stage in stages:
                topic = topic_at(stage.topic, rejoined)
                self._ends.read(ports.ReadLogEnd(topic, stage.partition, standing.installation))

    def _read_end(self, effect: ports.ReadLogEnd) -> ports.LogEnd | ports.Unreachable:
        if self._opening is not None:
            self._opening.join()
        return self._ends.read(effect)

    def _restore_topic(self, effect: ports.RestoreTopic) -> Any:
        # Hundreds of milliseconds to import, and most takeovers restore nothing.
        from zerotail.operate.restoring import restore_topic

        return _answered(lambda: restore_topic(self._configuration, effect))

    def close(self) -> None:
        """Give back every session and client."""
        if self._opening is not None:
            self._opening.join()
        for one in self._sessions.values():
            one.close()
        for receiver in self._lane_receivers.values():
            receiver.close()
        if self._locked is not None:
            self._locked.close()
        self._open_way_in()
        self._ends.close()
        super().close()

    def _read(self, site: SiteName, work: Callable[[Connection], T]) -> Any:
        return self._sessions[site].read(work)

    def _known(self, site: SiteName, work: Callable[[Connection], T]) -> T:
        """What a site's database says, with the patience of its session; `Unavailable` when it says nothing."""
        said = self._sessions[site].read(work)
        if isinstance(said, (ports.Unreachable, ports.Refused)):
            raise Unavailable(f"the database of {site} does not answer.", code="ZT301")
        return said

    def _write(self, site: SiteName, work: Callable[[Connection], T]) -> Any:
        try:
            return self._sessions[site].write(work)
        except Refused as refused:  # a right is missing, and something may have been done before
            return ports.Refused(refused.message)

    def _receiver(self, lane: Lane) -> Receiver:
        if lane not in self._lane_receivers:
            channel = self._configuration.channels[lane.channel]
            self._lane_receivers[lane] = Contained(lambda: open_receiver(channel, lane, self._site))
        return self._lane_receivers[lane]

    def _command(
        self, words: tuple[str, ...], site: SiteName, seconds: float = COMMAND_SECONDS
    ) -> ports.Done | ports.Refused:
        other = self._configuration.other_site(site)
        ended = run_command(words, site, other, Deadline.after(seconds))
        return ports.Done() if ended.ok else ports.Refused(ended.said)

    def _compare_copies(self, effect: ports.CompareCopies) -> ports.CopiesCompared | ports.Unreachable:
        try:
            return ports.CopiesCompared(
                compare_copies(
                    lambda work: self._known(effect.site, work), lambda work: self._known(effect.active, work)
                )
            )
        except Unavailable:
            return ports.Unreachable()

    def _fence(self, effect: ports.FenceSite) -> Any:
        words = self._configuration.takeover.fence
        if words is None:
            return ports.Unreachable()
        done = self._command(words, effect.site)
        if isinstance(done, ports.Refused):
            self._notes.remark(f"{effect.site} could not be fenced: {done.reason}")
        return done

    def _promote(self, effect: ports.Promote) -> Any:
        dsn, words = self._dsns[effect.site], self._configuration.takeover.promote
        if words is not None:
            same = _answered(lambda: _require_same_server(dsn, effect.at_least))
            done = self._command(words, effect.site) if isinstance(same, ports.Done) else same
            if not isinstance(done, ports.Done):
                return done
            return _answered(lambda: _wait_until_promoted(dsn))
        return _answered(lambda: _promote(dsn, effect.at_least))

    def _change_epoch(self, effect: ports.ChangeEpoch) -> Any:
        if effect.phase is Phase.DRAINING:
            self._open_way_in()
            self._shut = ShutWayIn(effect.site, self._dsns[effect.site], _PATIENCE_SECONDS)
            if (refused := self._shut.shut()) is not None:
                return refused
        changed = self._write(effect.site, lambda c: lineage.change_epoch(c, effect))
        if effect.phase is Phase.LIVE or (effect.phase is Phase.DRAINING and not isinstance(changed, ports.Done)):
            self._open_way_in()
        if isinstance(changed, ports.Done) and effect.durability is Durability.GATED:
            self._remark_unless_waiting(effect.site, _answered(lambda: self._wait_again(effect.site)))
        return changed

    def _open_way_in(self) -> None:
        if self._shut is not None:
            self._shut.close()
            self._shut = None

    def _observe_drained(self, effect: ports.ObserveDrained) -> Any:
        """What is left; a drain that somebody has interrupted is none, and ends as one that falls silent."""
        if self._shut is not None and not self._shut.is_shut():
            return ports.Refused("the way in was opened again")
        return self._read(effect.site, owed.observe_drained)

    def _wait_again(self, site: SiteName) -> ports.Done:
        """Let commits wait for the standby again, where they stopped waiting and it goes by its site's name."""
        standby = self._configuration.other_site(site)
        with session_within(self._dsns[site], Deadline.after(_PATIENCE_SECONDS)) as connection:
            waits = one_row(connection, "show synchronous_standby_names")[0]
            if not waits:
                if not is_streaming(connection, standby):
                    raise Refused(f"no standby of the name {standby} follows")
                set_synchronous_standby(connection, standby)
        return ports.Done()

    def _remark_unless_waiting(self, site: SiteName, answer: Any) -> None:
        """The epoch is gated either way: nothing leaves before the standby has it, however commits return."""
        if not isinstance(answer, ports.Done):
            reason = answer.reason if isinstance(answer, ports.Refused) else "the database does not answer"
            names = written(self._configuration.other_site(site))
            by_hand = f"alter system set synchronous_standby_names = '{names}'; select pg_reload_conf();"
            self._notes.remark(
                f"commits of {site} still wait for no standby, {reason}; the gate holds, by hand: {by_hand}"
            )

    def _record_step(self, effect: ports.RecordStep) -> Any:
        """In the file first; in the database as soon as it has the epoch, together with what came before."""
        noted = self._notes.step_done(effect.epoch, effect.step)
        steps = [failover.StepDone(effect.epoch, step, effect.site, done_at) for step, done_at in noted]
        stored = self._write(effect.site, lambda c: failover.record_steps(c, steps))
        return ports.Done() if isinstance(stored, ports.Refused) else stored

    def _shut_down(self, effect: ports.ShutDown) -> Any:
        words = self._configuration.takeover.stop
        if words is None:
            return ports.Refused("no command to stop it is configured (takeover.stop)")
        seen = self._read(effect.site, failover.observe_site)
        if not isinstance(seen, ports.SiteObserved):
            return seen
        self._notes.stopping(seen.flushed)
        self._sessions[effect.site].close()
        done = self._command(words, effect.site)
        if answers(self._dsns[effect.site]):
            self._notes.stopping(None)  # it goes on, and so does its log
            return done if isinstance(done, ports.Refused) else ports.Refused("it still answers")
        return done if isinstance(done, ports.Refused) else ports.Done(self._end_of(effect.site, seen.flushed))

    def _end_of(self, site: SiteName, before: Lsn) -> Lsn:
        """Up to where the log of a stopped database reached, taken behind its stop and from the other site's copy.

        Whoever takes it before does not know what was committed meanwhile, and that copy may lack it.
        """
        target = self._configuration.other_site(site)
        try:
            end = shutdown.find_end(self._dsns[target], Deadline.after(_END_SECONDS))
        except Refused as refused:
            self._notes.remark(
                f"whether {target} has the very end of the log of {site} was not looked at: {refused.message}"
            )
            return before
        self._notes.stopping(end)
        return end

    def _keep_tail(self, effect: ports.KeepTail) -> Any:
        def keep() -> ports.Done:
            known = self._known(effect.site, lineage.read_standing).lineage
            survived, common = self._known(
                effect.source, lambda source: (tail.survived_of(known, source), lineage.read_standing(source).lineage)
            )
            self._locked = tail.LockedDatabase(self._dsns[effect.site])
            kept = self._locked.keep_tail(
                effect.site,
                survived,
                common,
                self._notes.folder,
                released=effect.released,
                known=lambda rows: self._known(effect.source, lambda source: tail.find_known(source, rows)),
            )
            self._notes.kept(kept)
            return ports.Done(kept.position)

        return _answered(keep)

    def _copy_database(self, effect: ports.CopyDatabase) -> Any:
        words = self._configuration.takeover.attach
        if words is None:
            return ports.Refused("no command to attach it is configured (takeover.attach)")
        if effect.replaced is None:
            if answers(self._dsns[effect.site]):
                return ports.Refused("it answers again, so what it holds must be looked at first")
        elif self._locked is None or not self._locked.still_in(effect.replaced[0]):
            return ports.Refused("the database was written to meanwhile")
        self._sessions[effect.site].close()
        done = self._command(words, effect.site, ATTACH_SECONDS)
        self._forget_peer()
        self._sessions[effect.source].close()  # it was silent for as long as the copy took
        return done


def _promote(dsn: str, at_least: Lsn) -> ports.Done:
    promotion.promote(dsn, Deadline.after(_PROMOTION_SECONDS), at_least)
    return ports.Done()


def _require_same_server(dsn: str, at_least: Lsn) -> ports.Done:
    with session_within(dsn, Deadline.after(_PATIENCE_SECONDS)) as connection:
        if promotion.is_in_recovery(connection):
            promotion.require_same_server(connection, at_least)
    return ports.Done()


def _wait_until_promoted(dsn: str) -> ports.Done:
    deadline = Deadline.after(_PROMOTION_SECONDS)
    with session_within(dsn, deadline) as connection:
        wait_until("the standby is promoted", lambda: not promotion.is_in_recovery(connection), deadline)
    return ports.Done()


def _answered(work: Callable[[], ports.Done | ports.TopicRestored]) -> Any:
    """What came of it, as an answer to an effect."""
    try:
        return work()
    except Unavailable:
        return ports.Unreachable()
    except Unfinished:
        return ports.Indefinite()
    except Refused as refused:
        return ports.Refused(refused.message)
