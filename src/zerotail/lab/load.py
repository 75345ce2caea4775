"""Be the business: insert instructions at a given rate, from several writers at once.

All writers walk through the same sequence of payments (`lab.payments`) in **steps** and insert their own share of each
step, in one transaction:

- A producer whose serials are `given` has one writer for each partition, which counts them on: they stay dense.
- Of a producer whose instructions zerotail numbers, every writer inserts a share, and nobody waits for anybody.

A step is due when, at the given rate, its first payment is due; who is late does not wait. What counts as inserted is
what a COMMIT has returned for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event, Thread

import msgspec
import numpy as np

from zerotail.config import Configuration
from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused, Unavailable, Unfinished, ZerotailError
from zerotail.lab.payments import Drawn, Numbers, Payments, account_name, partition_of
from zerotail.postgres.bulk import (
    NumberedRow,
    UnnumberedRow,
    cancel,
    copy_rows,
    is_alone_in_loading,
)
from zerotail.postgres.connection import Connection, one_row, session
from zerotail.postgres.feed import last_serial
from zerotail.postgres.promotion import is_in_recovery
from zerotail.postgres.registration import find_numbers

_ANSWER_SECONDS = 10.0
_END_SECONDS = 5.0
_AGAIN_SECONDS = 0.5
_STEP_SECONDS = 0.05
_ROWS_AT_ONCE = 2000
"""What a writer inserts in one transaction when nothing holds it back."""

IN_DOUBT = "What was on its way in that moment may be stored as well."

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """How much, how fast, by whom."""

    count: int
    rate: float = 0.0
    """Instructions a second, over all writers; 0 is as fast as possible."""
    writers: int = 4
    accounts: int = 10_000
    seed: int = 1
    stamped: bool = False
    """Whether each says `at` which microsecond it was given, for who measures how long it takes."""

    @property
    def step(self) -> int:
        """How many payments are due together."""
        most = _ROWS_AT_ONCE * self.writers
        return min(most, max(1, int(self.rate * _STEP_SECONDS))) if self.rate else most


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was inserted."""

    site: str
    inserted: int
    by_producer: dict[str, int]
    seconds: float
    rows_per_second: float


class _Payment(msgspec.Struct, omit_defaults=True):
    id: str
    account: str
    amount: int
    at: int | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """A producer to insert for."""

    name: str
    number: ProducerNumber
    given: bool
    partitions: int


@dataclass(frozen=True, slots=True)
class Database:
    """The database that takes instructions now."""

    site: str
    dsn: str


class Load:
    """One load, from its first instruction to its last; `inserted` may be read at any time."""

    def __init__(
        self, configuration: Configuration, database: Database, settings: LoadSettings, deadline: Deadline
    ) -> None:
        self._settings = settings
        self._database = database
        self._sources = wait_until_registered(configuration, database, deadline)
        self._payments = Payments.of(settings.seed, len(self._sources), settings.accounts)
        self._names = [account_name(account) for account in range(settings.accounts)]
        self._partitions = np.array(
            [[partition_of(name, source.partitions) for name in self._names] for source in self._sources]
        )
        # Of the partitions of a producer with given serials, each has a writer of its own, as far as there are enough.
        self._owner = np.arange(self._partitions.max() + 1) % settings.writers
        self._given = np.array([source.given for source in self._sources])
        self._run = f"{time.time_ns() // 1000:x}"
        self._counts = [[0] * len(self._sources) for _ in range(settings.writers)]
        self._sessions: dict[int, Connection] = {}
        # Not `Thread.join`: in Python 3.11 a join that is interrupted by Ctrl-C takes a thread that runs for one that
        # has ended.
        self._ended = [Event() for _ in range(settings.writers)]
        self._failures: list[Exception] = []
        self._stop = Event()
        self._began = 0.0
        self.unanswered = 0
        """Writers whose last COMMIT nobody had answered when the load ended: what they brought may be stored."""

    @property
    def inserted(self) -> int:
        """How many instructions are in the database by our doing."""
        return sum(map(sum, self._counts))

    def run(self, tell: Tell = lambda _inserted: None) -> Loaded:
        """Insert everything; `Unfinished` with how many were inserted when the database is lost or declines."""
        with session(self._database.dsn, Deadline.after(_ANSWER_SECONDS)) as connection:
            if not is_alone_in_loading(connection):
                raise Refused("another load is at work on this database.", code="ZT224")
            lasts = self._last_serials(connection)
            self._began = time.monotonic()
            # Ours alone: a process that has to end does not wait for a database that hangs.
            try:
                for writer in range(self._settings.writers):
                    Thread(target=self._write, args=(writer, dict(lasts)), daemon=True).start()
                for ended in self._ended:
                    while not ended.wait(0.1) and not self._failures:
                        tell(self.inserted)
                tell(self.inserted)
            finally:
                self._end()
        if self._failures:
            raise self._told(self._failures[0])
        return self._loaded()

    def _end(self) -> None:
        """Let writers finish what they are at; one that waits for the other site for too long is told to give up."""
        self._stop.set()
        patience = Deadline.after(2 * _END_SECONDS)
        wait = _END_SECONDS
        while self._wait_for_writers(Deadline.after(wait)) and not patience.passed:
            # More than once: a session that is between two statements in that moment does not hear it, and then waits.
            for writer, connection in list(self._sessions.items()):
                if not self._ended[writer].is_set():
                    cancel(connection)
            wait = _AGAIN_SECONDS
        self.unanswered = sum(not ended.is_set() for ended in self._ended)

    def _wait_for_writers(self, deadline: Deadline) -> bool:
        """Whether one is still at work when the deadline passes."""
        return not all(ended.wait(deadline.seconds_left) for ended in self._ended)

    def _last_serials(self, connection: Connection) -> dict[tuple[ProducerNumber, PartitionNumber], Serial]:
        lanes = [
            (source.number, PartitionNumber(partition))
            for source in self._sources
            if source.given
            for partition in range(source.partitions)
        ]
        return {lane: last_serial(connection, *lane) for lane in lanes}

    def _write(self, writer: int, lasts: dict[tuple[ProducerNumber, PartitionNumber], Serial]) -> None:
        try:
            with session(self._database.dsn, Deadline.after(_ANSWER_SECONDS)) as connection:
                self._sessions[writer] = connection
                for first, following in self._steps():
                    self._wait_until_due(first)
                    if self._stop.is_set():
                        return
                    self._insert(connection, writer, self._share(writer, first, following), lasts)
        except Exception as error:  # noqa: BLE001 (raised again by `run`)
            self._failures.append(error)
        finally:
            self._ended[writer].set()

    def _steps(self) -> Iterator[tuple[int, int]]:
        step, count = self._settings.step, self._settings.count
        return ((first, min(first + step, count)) for first in range(0, count, step))

    def _wait_until_due(self, first: int) -> None:
        if self._settings.rate:
            self._stop.wait(max(0.0, self._began + first / self._settings.rate - time.monotonic()))

    def _share(self, writer: int, first: int, following: int) -> tuple[Drawn, Numbers]:
        """The writer's part of a step, and the partition of each payment in it."""
        drawn = self._payments.draw(first, following)
        partition = self._partitions[drawn.source, drawn.account]
        owner = np.where(self._given[drawn.source], self._owner[partition], drawn.number % self._settings.writers)
        mine = owner == writer
        return Drawn(*(column[mine] for column in drawn)), partition[mine]

    def _insert(
        self,
        connection: Connection,
        writer: int,
        share: tuple[Drawn, Numbers],
        lasts: dict[tuple[ProducerNumber, PartitionNumber], Serial],
    ) -> None:
        drawn, partitions = share
        numbered: list[NumberedRow] = []
        unnumbered: list[UnnumberedRow] = []
        at = time.time_ns() // 1000 if self._settings.stamped else None
        columns = (drawn.number, drawn.source, drawn.account, drawn.amount, partitions)
        for number, which, account, amount, place in zip(*(column.tolist() for column in columns), strict=True):
            source, partition = self._sources[which], PartitionNumber(place)
            name = f"{self._run}-{number}"
            value = msgspec.json.encode(_Payment(name, self._names[account], amount, at))
            if source.given:
                # Nobody else has this lane: see `_owner`.
                serial = lasts[source.number, partition] = Serial(lasts[source.number, partition] + 1)
                numbered.append(NumberedRow(source.number, partition, serial, name, value))
            else:
                unnumbered.append(UnnumberedRow(source.number, partition, name, value))
        if numbered or unnumbered:
            copy_rows(connection, numbered, unnumbered)
        for which, count in enumerate(np.bincount(drawn.source, minlength=len(self._sources)).tolist()):
            self._counts[writer][which] += count

    def _told(self, cause: Exception) -> Exception:
        if not isinstance(cause, ZerotailError):
            return cause
        return Unfinished(
            f"{self.inserted} of {self._settings.count} instructions were inserted, then {cause.message}",
            code="ZT223",
            why=IN_DOUBT,
        )

    def _loaded(self) -> Loaded:
        seconds = time.monotonic() - self._began
        by_producer = {source.name: sum(c[n] for c in self._counts) for n, source in enumerate(self._sources)}
        rate = self.inserted / seconds if seconds else 0.0
        return Loaded(self._database.site, self.inserted, by_producer, round(seconds, 3), round(rate, 1))


def find_database(configuration: Configuration) -> Database:
    """The database that takes instructions: of those that follow no other one, that of the newest epoch."""
    found: dict[int, Database] = {}
    silent: list[str] = []
    for site, settings in configuration.sites.items():
        dsn = settings.database.dsn.reveal()
        try:
            with session(dsn, Deadline.after(_ANSWER_SECONDS)) as connection:
                if not is_in_recovery(connection):
                    (epoch,) = one_row(connection, "select coalesce(max(epoch), 0) from zerotail.epoch")
                    found[int(epoch)] = Database(site, dsn)
        except Unavailable:
            silent.append(site)
    if not found:
        what = f"; {' and '.join(silent)} did not answer" if silent else ""
        raise Unavailable(f"none of the two databases takes instructions{what}.", code="ZT221")
    return found[max(found)]


def wait_until_registered(configuration: Configuration, database: Database, deadline: Deadline) -> list[_Source]:
    """Every producer of the configuration that takes instructions from us, once all of them have their numbers."""
    wanted = {
        str(name): producer
        for name, producer in configuration.producers.items()
        if producer.source == "table" and producer.table is None
    }
    if not wanted:
        raise Refused("the configuration names no producer that takes instructions through zerotail.", code="ZT225")
    with session(database.dsn, Deadline.after(_ANSWER_SECONDS)) as connection:

        def known() -> dict[str, ProducerNumber] | None:
            found = find_numbers(connection, list(wanted))
            return found if len(found) == len(wanted) else None

        try:
            numbers = wait_until("producers are registered", known, deadline, every_seconds=0.2)
        except Unavailable as error:
            missing = sorted(wanted.keys() - find_numbers(connection, list(wanted)).keys())
            raise Unavailable(
                f"not registered in the database of {database.site}: {', '.join(missing)}.",
                code="ZT222",
                why="Producers are registered when they are run for the first time.",
                tries=[f"zerotail run all --site {database.site} --config …"],
            ) from error
    return [
        _Source(name, numbers[name], producer.serials == "given", configuration.topics[producer.topic].partitions)
        for name, producer in wanted.items()
    ]
