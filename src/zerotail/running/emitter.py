"""The emitter as a process: one thread for each lane of this site, each with sessions and clients of its own.

    zerotail run emitter --config zerotail.yaml --site east

1. Lanes are looked up in the database again and again: a partition that is added gets a sender while others run.
2. A lane whose receiver is dead, refuses, or answers what nobody expects holds up itself only (E17): it says why, and
   is tried again. One whose receiver stands where our history cannot have brought it stops until a person says that it
   may go on (`postgres/lane_stop.py`); so much is stored, because the numbers would be given by and by.
3. A sender that is out of step starts again, with a new claim; so does one whose own site has opened a newer epoch
   (`renewal.py`). One that was replaced, works at a site that is not the active one, or is refused by the site's own
   database ends the process, which says so by its exit code: nobody is left to guess whether it still sends.
4. A lane that leads to the next stage is a producer's feed (`flow/produce.py`): behind the gate, like any other.
5. Whoever stops it lets it end between two effects: what was begun is finished, and its answer noted.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread

from zerotail import errors
from zerotail.channel.configured import open_receiver, outside_channels, sender_of
from zerotail.channel.contained import Contained
from zerotail.channel.receiver import Receiver
from zerotail.config import Configuration
from zerotail.core.emission import Lane
from zerotail.core.identity import SiteName
from zerotail.flow.emit import emit
from zerotail.flow.produce import produce
from zerotail.ports import Done, End, Feed, Indefinite, Refused, Story, Unreachable
from zerotail.postgres.connection import Connection
from zerotail.postgres.lane_stop import read_stop, store_stop
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.owed import find_feeds, find_lanes
from zerotail.postgres.transaction import Session
from zerotail.running.parts import topic_channels
from zerotail.running.prepare import adapter_settings, wait_until_active
from zerotail.running.renewal import through_renewals
from zerotail.running.report import Say, Tell
from zerotail.running.upstream import watch_upstream
from zerotail.wiring import Backoff, SiteAdapters, Stopped, drive

KeepSending = Callable[[Backoff], End]
"""What keeps a lane going, until it ends for good."""
EXIT_CODES = {End.SUPERSEDED: 6, End.NOT_ACTIVE: 7}
_TWO_HISTORIES = frozenset({"ZT601", "ZT602", "ZT603", "ZT607"})
"""What stops a lane until a person decides."""
_LOOK_SECONDS = 1.0
_RECORDS_AT_ONCE = 5_000
_PATIENCE = 150
"""Looks at a standing vector, 20 ms each, before records are sent to the next stage again."""


class Emitter:
    """The senders of one site."""

    def __init__(
        self, configuration: Configuration, site: SiteName, tell: Tell, say: Say, *, standby: bool = False
    ) -> None:
        self._configuration = configuration
        self._site = site
        self._settings = adapter_settings(configuration, site)
        self._tell = tell
        self._say = say
        self._standby = standby
        self._stop = Event()
        self._exit_code = 0
        self._lock = Lock()
        self._senders: dict[Lane, Thread] = {}

    def stop(self) -> None:
        """Let every sender end between two effects."""
        self._stop.set()

    def run(self) -> int:
        """Send until stopped or replaced; the exit code, of several the highest."""
        if self._standby and not self._waited():
            return 0
        database = Session(self._settings.dsn, "zerotail emitter")
        told = ""
        try:
            while not self._stop.is_set():
                found = database.read(self._find_lines)
                if isinstance(found, Refused) and found.reason != told:
                    self._tell(f"waiting: {found.reason}")
                    told = found.reason
                for lane, keep_sending in found.items() if isinstance(found, dict) else ():
                    if lane not in self._senders:
                        self._start(lane, keep_sending)
                self._stop.wait(_LOOK_SECONDS)
        finally:
            self._stop.set()
            for sender in self._senders.values():
                sender.join()
            database.close()
        return self._exit_code

    def _waited(self) -> bool:
        """At a standby: whether its turn has come. Meanwhile it looks at what it follows."""
        turn = Event()
        watch_upstream(self._settings, turn, self._tell, self._say)
        try:
            return wait_until_active(self._settings, self._stop)
        finally:
            turn.set()

    def _find_lines(self, connection: Connection) -> dict[Lane, KeepSending]:
        """Every lane there is now, with what keeps it going."""
        lines: dict[Lane, KeepSending] = {}
        for lane in find_lanes(connection, outside_channels(self._configuration)):
            lines[lane] = partial(self._keep_sending, lane)
        for feed in find_feeds(connection, [channel for _, channel, _ in topic_channels(self._configuration)]):
            if feed.lane is not None:
                lines[feed.lane] = partial(self._keep_passing_on, feed)
        return lines

    def _start(self, lane: Lane, keep_sending: KeepSending) -> None:
        name = _name_of(lane)
        self._senders[lane] = Thread(target=self._send_on, args=(lane, keep_sending), name=name)
        self._senders[lane].start()
        self._tell(f"sending on {name}")

    def _send_on(self, lane: Lane, keep_sending: KeepSending) -> None:
        """Send on one lane until the end of the process: what goes wrong on it is tried again, more and more slowly."""
        backoff, told = Backoff(), ""
        while not self._stop.is_set():
            code = ""
            try:
                ended = keep_sending(backoff)
            except Stopped:
                return
            except errors.Refused as error:
                self._end(error.exit_code, lane, f"{error.code} {error.message}".strip())
                return
            except errors.Broken as error:
                code, reason = error.code, f"{error.code} {error.message}".strip()
            except BaseException:  # noqa: BLE001 - a sender must not be gone while the process looks alive
                reason = traceback.format_exc()
            else:
                self._end(EXIT_CODES[ended], lane, ended.value)
                return
            self._say("emitter", lane.channel, lane.partition, "stopped", reason.splitlines()[-1])
            if reason != told:
                self._tell(f"stopped: {_name_of(lane)}: {reason}")
                told = reason
            if code in _TWO_HISTORIES:
                self._store_stop(lane, reason)
            self._stop.wait(backoff.next_seconds())

    def _store_stop(self, lane: Lane, reason: str) -> None:
        """Keep that a lane has stopped where every start finds it. Where the database declines, a new start of the lane
        finds the same once more, or that this site is not the active one any longer.
        """
        database = Session(self._settings.dsn, "zerotail emitter")
        try:
            stored: object = Unreachable()
            while isinstance(stored, Unreachable | Indefinite) and not self._stop.is_set():
                stored = database.write(lambda connection: store_stop(connection, lane, reason))
                if not isinstance(stored, Done):
                    self._stop.wait(_LOOK_SECONDS)
        except errors.ZerotailError as error:
            self._tell(f"that {_name_of(lane)} has stopped cannot be stored: {error.code} {error.message}")
        finally:
            database.close()

    def _wait_while_stopped(self, lane: Lane) -> None:
        """Return when a person has said that the lane may go on, or nobody has stopped it."""
        database = Session(self._settings.dsn, "zerotail emitter")
        try:
            while not self._stop.is_set():
                stopped = database.read(lambda connection: read_stop(connection, lane))
                if stopped == "":
                    return
                if isinstance(stopped, str):
                    self._say("emitter", lane.channel, lane.partition, "stopped", self._with_a_way_on(lane, stopped))
                self._stop.wait(_LOOK_SECONDS)
            raise Stopped
        finally:
            database.close()

    def _with_a_way_on(self, lane: Lane, reason: str) -> str:
        line = f"zerotail emissions resume --channel {lane.channel} --partition {lane.partition}"
        return f"{reason}; when that is mended: {line} --by NAME --site {self._site}"

    def _keep_sending(self, lane: Lane, backoff: Backoff) -> End:
        self._wait_while_stopped(lane)
        adapters = SiteAdapters(self._settings)
        try:
            channel = self._configuration.channels[lane.channel]
            receiver = Contained(
                lambda: _witnessed(open_receiver(channel, lane, self._site), self._site, lane),
                lambda count: self._say("emitter", lane.channel, lane.partition, "working", sent=count),
            )
            adapters.attach(lane.channel, receiver)
            sender = sender_of(self._configuration, lane, self._site)
            return self._keep_driving(lambda: emit(sender), adapters, lane, backoff)
        finally:
            adapters.close()

    def _keep_passing_on(self, feed: Feed, backoff: Backoff) -> End:
        adapters = SiteAdapters(self._settings)
        try:
            story = partial(produce, feed, self._site, limit=_RECORDS_AT_ONCE, patience=_PATIENCE)
            return self._keep_driving(story, adapters, feed.lane, backoff)
        finally:
            adapters.close()

    def _keep_driving(
        self, story: Callable[[], Story[End]], adapters: SiteAdapters, lane: Lane | None, backoff: Backoff
    ) -> End:
        """Drive a story, and again in each newer epoch of this site."""
        database = Session(self._settings.dsn, "zerotail emitter")
        heed = self._heed(lane)

        def work() -> End:
            ended = drive(story(), adapters, self._stop, heed, backoff)
            if ended is End.OUT_OF_STEP:
                heed(ended.value)
            return ended

        try:
            return through_renewals(
                lambda: database.read(read_standing), self._site, self._stop, work, backoff.next_seconds
            )
        finally:
            database.close()

    def _heed(self, lane: Lane | None) -> Callable[[str], None]:
        """Say why a lane waits, when it does."""
        if lane is None:
            return lambda _: None
        name, partition = lane.channel, lane.partition

        def heed(reason: str) -> None:
            self._say("emitter", name, partition, "waiting" if reason else "working", reason)

        return heed

    def _end(self, exit_code: int, lane: Lane, reason: str) -> None:
        with self._lock:
            self._exit_code = max(self._exit_code, exit_code)
        self._say("emitter", lane.channel, lane.partition, "stopped", reason)
        self._tell(f"ending: {_name_of(lane)}: {reason}")
        self._stop.set()


def _witnessed(receiver: Receiver, site: SiteName, lane: Lane) -> Receiver:
    """In a drill every release is written down before it is used; elsewhere the receiver is left as it is."""
    folder = os.environ.get("ZEROTAIL_LAB_HISTORY")
    if folder is None:
        return receiver
    from zerotail.drill.sender import WitnessedReceiver

    return WitnessedReceiver(receiver, Path(folder), site, lane)


def _name_of(lane: Lane) -> str:
    return f"{lane.channel}/{lane.partition}"
