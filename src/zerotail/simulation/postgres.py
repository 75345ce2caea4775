"""A simulated PostgreSQL: a write-ahead log with a local end and a remote one, and every way to see too much.

A server is a list of log entries; its tables are what the visible entries say. A standby holds a prefix of
its source's list, flushed, and has replayed a prefix of that. A *position* is the number of entries below
it.

What is modelled is what was measured on the real server and is pinned by `tests/integration/postgres/test_truths.py`:

1. A commit that waits for the standby is in the local log but invisible, and holds its row locks.
2. Cancelling the wait makes the row visible and the client sees success; terminating the session makes it
   visible and the client sees a lost connection; so does a crash and restart. Emptying the list of standbys
   shows all waiting rows at once, with success and without a word.
3. A dead client does not end the wait: the row stays invisible until the standby has it.
4. Promotion keeps everything flushed and begins a new timeline; from then on nothing is confirmed to the old
   primary. The old primary's own entries beyond that point exist nowhere else.

Time-outs of statements, Ctrl-C at a client and disks that fail under a commit are pinned on the real server only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from zerotail.core.epoch import Lineage
from zerotail.core.gate import GateAnswer
from zerotail.core.identity import Lsn, SiteName, Timeline
from zerotail.ports import Standing
from zerotail.simulation.kafka import OURS

SET, EXTEND, NUMBERED = 0, 1, 2
"""A row is replaced; rows are put behind those that are there; a row comes with its place, which may leave a hole."""
Write = tuple[int, str, Any, Any]
"""Operation, table, key, value."""

Tables = dict[str, dict[Any, Any]]


class Entry(NamedTuple):
    """One committed transaction in the log. Entries are compared by identity: the same entry, the same
    past.
    """

    timeline: int
    writes: Sequence[Write]


class Waiting:
    """A commit that waits for the standby."""

    __slots__ = ("connected", "entry", "finished", "locks", "position", "succeeded")

    def __init__(self, entry: Entry, position: int, locks: frozenset[tuple[str, Any]]) -> None:
        self.entry = entry
        self.position = position
        self.locks = locks
        self.connected = True
        self.finished = False
        self.succeeded = True
        """What the client sees once it is finished: success, or a lost connection."""


class Server:
    """The database of one site."""

    __slots__ = (
        "acknowledged",
        "in_recovery",
        "log",
        "names",
        "replayed",
        "site",
        "source",
        "starts",
        "system",
        "tables",
        "timeline",
        "up",
        "waiting",
        "went_on",
    )

    def __init__(self, site: SiteName, system: int) -> None:
        self.site = site
        self.system = system
        self.timeline = 1
        self.in_recovery = False
        self.source: SiteName | None = None
        """The site that a standby follows."""
        self.up = True
        self.starts = 0
        """How often it was started: which life it is in."""
        self.names = False
        """Whether commits that ask for it wait for a standby."""
        self.log: list[Entry] = []
        self.replayed = 0
        self.acknowledged = 0
        """What a primary knows to be flushed at its standby."""
        self.tables: Tables = {}
        self.waiting: list[Waiting] = []
        self.went_on: int | None = None
        """Where a promoted server left the log of its primary; forgotten when it is started anew."""

    # What everybody may read.

    def table(self, name: str) -> dict[Any, Any]:
        """A table as visible now."""
        return self.tables.setdefault(name, {})

    @property
    def lineage(self) -> Lineage:
        """The epochs as visible now."""
        lineage: Lineage = self.tables["lineage"][""]
        return lineage

    def standing(self) -> Standing:
        """Role, timeline and epochs, in one snapshot."""
        return Standing(
            self.lineage,
            None if self.in_recovery else Timeline(self.timeline),
            self.system,
            dict(self.tables.get("rejoined", {})),
            self.life,
            OURS,
        )

    @property
    def name_of_life(self) -> str:
        """The nonce that its life has, or would have."""
        return f"{self.site} {self.starts}"

    @property
    def life(self) -> str:
        """The nonce of its life, if that is verified."""
        known = self.tables.get("life", {}).get("verified")
        return self.name_of_life if not self.in_recovery and known == self.name_of_life else ""

    def begin_life(self, *, verified: bool = True) -> list[Write]:
        """What names its life, and says that it is verified."""
        name = self.name_of_life
        return [(SET, "life", "", name), *([(SET, "life", "verified", name)] if verified else [])]

    @property
    def position(self) -> Lsn:
        """Where the next entry goes: covers whatever could be read so far."""
        return Lsn(len(self.log))

    def gate_answer(self) -> GateAnswer:
        """Everything the gate compares, in one statement."""
        return GateAnswer(
            self.in_recovery,
            self.system,
            Timeline(self.timeline),
            self.lineage.current.epoch,
            Lsn(len(self.log)),
            life=self.tables.get("life", {}).get("", ""),
        )

    # Writing.

    def locked(self, writes: Iterable[Write]) -> bool:
        """Whether a waiting commit holds a row that these writes touch."""
        return any((write[1], write[2]) in waiting.locks for waiting in self.waiting for write in writes)

    def write(self, writes: Sequence[Write], *, wait: bool) -> Waiting | None:
        """Append a transaction; visible at once, or when the standby has it."""
        entry = Entry(self.timeline, writes)
        self.log.append(entry)
        if wait and self.names:
            waiting = Waiting(entry, len(self.log), frozenset((write[1], write[2]) for write in writes))
            self.waiting.append(waiting)
            return waiting
        self._show(entry)
        return None

    def _show(self, entry: Entry) -> None:
        tables = self.tables
        for operation, name, key, value in entry.writes:
            table = tables.get(name)
            if table is None:
                table = tables[name] = {}
            if operation == SET:
                table[key] = value
            elif operation == EXTEND:
                table.setdefault(key, []).extend(value)
            else:
                self._put(table.setdefault(key, []), tables.setdefault("beyond a hole", {}).setdefault(key, {}), value)

    def _put(self, rows: list[Any], beyond: dict[int, Any], value: tuple[int, Any]) -> None:
        place, row = value
        beyond[place] = row
        while len(rows) + 1 in beyond:
            rows.append(beyond.pop(len(rows) + 1))

    def _finish(self, waiting: Waiting, *, succeeded: bool) -> None:
        waiting.finished = True
        waiting.succeeded = succeeded
        self._show(waiting.entry)

    def confirm(self, flushed: int) -> None:
        """The standby says how far it has flushed: earlier commits stop waiting."""
        self.acknowledged = max(self.acknowledged, flushed)
        while self.waiting and self.waiting[0].position <= self.acknowledged:
            self._finish(self.waiting.pop(0), succeeded=True)

    # The ways to see too much.

    def cancel(self, waiting: Waiting) -> None:
        """pg_cancel_backend: success with a warning, the row is visible, the standby lacks it."""
        self.waiting.remove(waiting)
        self._finish(waiting, succeeded=True)

    def terminate(self, waiting: Waiting) -> None:
        """pg_terminate_backend: the connection is lost, the row is visible."""
        self.waiting.remove(waiting)
        self._finish(waiting, succeeded=False)

    def empty_names(self) -> None:
        """synchronous_standby_names = '' and reload: everybody who waits succeeds, nobody waits any more."""
        self.names = False
        for waiting in self.waiting:
            self._finish(waiting, succeeded=True)
        self.waiting.clear()

    def crash(self) -> None:
        """kill -9 of the server: sessions are gone, the local log stays."""
        self.up = False

    def start(self) -> None:
        """Start again: recovery shows everything that is in the local log."""
        self.up = True
        self.went_on = None
        self.starts += 1
        for waiting in self.waiting:
            self._finish(waiting, succeeded=False)
        self.waiting.clear()

    # Replication.

    def follows(self, source: Server) -> bool:
        """Whether this standby can stream from `source`: its log is a prefix of the source's."""
        mine = len(self.log)
        return (
            self.in_recovery
            and self.source == source.site
            and mine <= len(source.log)
            and (mine == 0 or source.log[mine - 1] is self.log[-1])
        )

    def receive(self, source: Server, count: int) -> int:
        """Flush up to `count` more entries of the source; how many there were."""
        mine = len(self.log)
        arrived = source.log[mine : mine + count]
        self.log += arrived
        self.timeline = source.timeline
        return len(arrived)

    def replay(self, count: int) -> None:
        """Make up to `count` more flushed entries readable."""
        end = min(len(self.log), self.replayed + count)
        for index in range(self.replayed, end):
            self._show(self.log[index])
        self.replayed = end

    def promote(self, held: int | None = None) -> None:
        """Become a primary: replay everything flushed, begin a new timeline. Another server than this one, of the same
        site, may hold only so many entries.
        """
        if held is not None and held < len(self.log):
            self.log = self.log[:held]
            self.tables = {}
            self.replayed = 0
        self.replay(len(self.log))
        self.went_on = len(self.log)
        self.in_recovery = False
        self.source = None
        self.timeline += 1
        self.names = False
        self.acknowledged = 0

    def drop_sessions(self) -> None:
        """Everybody who waits loses the connection, and what was waited for is gone with this copy."""
        for waiting in self.waiting:
            waiting.finished = True
            waiting.succeeded = False
        self.waiting.clear()

    def copy_from(self, source: Server) -> None:
        """Become a fresh copy of `source`, as its standby."""
        self.system = source.system
        self.timeline = source.timeline
        self.in_recovery = True
        self.source = source.site
        self.log = source.log[:]
        self.tables = {}
        self.replayed = 0
        self.went_on = None
        self.replay(len(self.log))
        self.drop_sessions()
        self.names = False
        self.up = True

    def fail_over_inside(self, keep: int) -> None:
        """A replica inside the site becomes the primary: it has the first `keep` entries."""
        self.become_replica(keep)
        self.promote_inside()

    def become_replica(self, keep: int) -> None:
        """The site's address leads to a replica that nobody has promoted: it has the first `keep` entries."""
        self.log = self.log[:keep]
        self.tables = {}
        self.replayed = 0
        self.drop_sessions()
        self.starts += 1
        self.in_recovery = True
        self.replay(keep)

    def promote_inside(self) -> None:
        """Whoever runs the site promotes its replica; its settings are the site's."""
        names, acknowledged = self.names, self.acknowledged
        self.promote()
        self.names, self.acknowledged = names, acknowledged

    def roll_back(self, keep: int) -> None:
        """Come back as a snapshot of the storage, with the first `keep` entries, on the same timeline."""
        self.log = self.log[:keep]
        self.tables = {}
        self.replayed = 0
        self.drop_sessions()
        self.replay(keep)
        self.acknowledged = min(self.acknowledged, keep)
        self.starts += 1

    def common_prefix(self, other: Server) -> int:
        """How many entries two logs share."""
        low, high = 0, min(len(self.log), len(other.log))
        while low < high:
            middle = (low + high + 1) // 2
            if self.log[middle - 1] is other.log[middle - 1]:
                low = middle
            else:
                high = middle - 1
        return low
