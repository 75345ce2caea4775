"""The business of a drill: submits instructions all the time, at whichever site is active, and knows what was accepted.

1. A batch counts as **acknowledged** when its rows are behind the gate; in an exposed epoch, when its commit returned.
2. A batch whose outcome is unknown is submitted again, under the same identifiers, until it is acknowledged: that is
   what a client does that got no answer.
3. Every instruction says in its identifier which number it is, so the judge can tell what is missing.
4. A **patient** client trusts the commit alone and waits in it for the standby. Whatever its commit says, nobody may
   tell it that it was accepted: it never asked the gate. Its instruction stays unknown, and is not submitted again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock, Thread

import msgspec

from zerotail.config import Configuration
from zerotail.core.epoch import Durability, Phase
from zerotail.core.identity import Lsn, PartitionNumber, ProducerName, SiteName
from zerotail.core.record import digest_of
from zerotail.deadline import Deadline
from zerotail.drill.history import AnyEvent, SubmitAccepted, SubmitInvoked, SubmitUnknown
from zerotail.errors import Refused, Unavailable, Unfinished, ZerotailError
from zerotail.lab.payments import account_name, partition_of
from zerotail.ports import Standing
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.gate import wait_until_gate_opens
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.position import read_position
from zerotail.postgres.vigil import cut_after

_STEP_SECONDS = 0.05
_ANSWER_SECONDS = 2.0
_AGAIN_SECONDS = 0.05
_PATIENT_SECONDS = 120.0
_SUBMITTING = "business"
_SUBMIT = """
insert into zerotail.submission (producer, partition, id, value)
select producer.producer, row.partition, row.id, row.value
  from unnest(%s::text[], %s::integer[], %s::text[], %s::bytea[]) as row (name, partition, id, value)
  join zerotail.producer on producer.name = row.name
 where (select true from zerotail.instruction as known
         where known.producer = producer.producer and known.id = row.id) is null
on conflict do nothing
"""
Transforms = dict[str, Callable[[bytes], bytes]]
"""What producers, by name, make of their rows: a record is compared with what it was made of."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The two databases as one site sees them."""

    site: SiteName
    own: str
    other: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a client submits."""

    id: str
    producer: ProducerName
    partition: PartitionNumber
    value: bytes


@dataclass(slots=True)
class Business:
    """Submits at a given rate from a thread of its own."""

    configurations: dict[SiteName, Configuration]
    """As each site sees the world."""
    transforms: Transforms
    rate: float
    count: int | None = None
    """So many in all; None: until it is stopped."""
    accounts: int = 2_000
    acknowledged: int = 0
    """So many instructions, from number 1 on, are known to be accepted."""
    noted: list[AnyEvent] = field(default_factory=list)
    """What the clients asked and were told."""
    _stop: Event = field(default_factory=Event)
    _threads: list[Thread] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _patient: int = 0

    @property
    def finished(self) -> bool:
        """Whether everything that was to be submitted is acknowledged."""
        return self.count is not None and self.acknowledged >= self.count

    def start(self) -> None:
        """Begin to submit, or go on; one that submits already does so at the same rate."""
        self._stop.clear()
        if not any(thread.name == _SUBMITTING and thread.is_alive() for thread in self._threads):
            self._begin(self._work, _SUBMITTING)

    def stop(self) -> None:
        """Submit nothing more; what was begun is finished first, or given up when nobody takes it."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def submit_patiently(self, site: SiteName, clients: int) -> None:
        """Let so many clients submit one instruction each, by a commit that waits for the standby."""
        for _ in range(clients):
            self._patient += 1
            name = f"p-{self._patient}"
            instruction = self._instruction(0, name)
            self._begin(partial(self._wait_in_commit, self._pair(site), instruction), name)

    def _begin(self, work: Callable[[], None], name: str) -> None:
        thread = Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        began, due = time.monotonic(), 0
        while not self._stop.is_set() and not self.finished:
            rate = self.rate
            size = max(1, int(rate * _STEP_SECONDS))
            if self.count is not None:
                size = min(size, self.count - self.acknowledged)
            self._submit_until_acknowledged(
                [self._instruction(self.acknowledged + step) for step in range(1, size + 1)]
            )
            due += size
            # Who was held up does not catch up: a client that waits does not ask for more.
            wait = began + due / rate - time.monotonic()
            if wait > 0:
                self._stop.wait(wait)
            if wait <= 0 or rate != self.rate:
                began, due = time.monotonic(), 0

    def _submit_until_acknowledged(self, batch: list[Instruction]) -> None:
        sites = list(self.configurations)
        turn = 0
        while not self._stop.is_set():
            site = sites[turn % len(sites)]
            # A batch is one call: of its repetitions the first instruction tells the checker enough.
            self._note([self._invoked(one) for one in (batch[:1] if turn else batch)])
            try:
                if self._submit(self._pair(site), batch):
                    self._note(SubmitAccepted(id=one.id, time=time.monotonic_ns()) for one in batch)
                    self.acknowledged += len(batch)
                    # The site that took it comes first from now on: a dict keeps the place of its first key.
                    self.configurations = {site: self.configurations[site], **self.configurations}
                    return
            except (Unavailable, Refused, Unfinished) as error:
                # Nobody knows: the same batch again, at whichever site is active then.
                self._note(
                    SubmitUnknown(id=one.id, reason=error.message, time=time.monotonic_ns()) for one in batch[:1]
                )
            turn += 1
            self._stop.wait(_AGAIN_SECONDS)

    def _submit(self, pair: Pair, batch: list[Instruction]) -> bool:
        """Whether a site took the batch; False when it is not the active one."""
        # A frozen server accepts a session and is silent: the client cuts the line itself.
        with (
            session(pair.own, Deadline.after(_ANSWER_SECONDS)) as connection,
            cut_after(connection, 2 * _ANSWER_SECONDS),
        ):
            connection.execute(b"set synchronous_commit = local")
            # As `zerotail.submit` does, in one transaction: a site that hands over takes nothing more, and who found an
            # epoch exposed is in the log before it is not.
            with connection.transaction():
                standing = read_standing(connection)
                if not standing.live_at(pair.site) or standing.lineage.current.phase is not Phase.LIVE:
                    return False
                connection.execute(_SUBMIT.encode(), _columns(batch))
            position = read_position(connection)
            self._pass_gate(connection, standing, pair.other, position)
        return True

    def _pass_gate(self, primary: Connection, standing: Standing, other: str, position: Lsn) -> None:
        if standing.lineage.current.durability is Durability.EXPOSED:
            return
        deadline = Deadline.after(_ANSWER_SECONDS)
        with session(other, deadline) as standby:
            wait_until_gate_opens(primary, standby, position, deadline)

    def _wait_in_commit(self, pair: Pair, instruction: Instruction) -> None:
        self._note([self._invoked(instruction)])
        try:
            with session(pair.own, Deadline.after(_PATIENT_SECONDS)) as connection:
                connection.execute(b"set synchronous_commit = on")
                connection.execute(_SUBMIT.encode(), _columns([instruction]))
            said = "the commit returned, and nobody asked the gate"
        except ZerotailError as error:
            said = error.message
        self._note([SubmitUnknown(id=instruction.id, reason=said, time=time.monotonic_ns())])

    def _note(self, events: Iterable[AnyEvent]) -> None:
        with self._lock:
            self.noted.extend(events)

    def _invoked(self, one: Instruction) -> SubmitInvoked:
        transform = self.transforms.get(one.producer)
        record = transform(one.value) if transform else one.value
        digest = digest_of(record).hex()
        return SubmitInvoked(
            id=one.id, producer=one.producer, partition=one.partition, digest=digest, time=time.monotonic_ns()
        )

    def _instruction(self, number: int, name: str | None = None) -> Instruction:
        configuration = next(iter(self.configurations.values()))
        producers = list(configuration.producers.items())
        producer, settings = producers[number % len(producers)]
        account = account_name(number * 7919 % self.accounts)
        partition = partition_of(account, configuration.topics[settings.topic].partitions)
        named = name or identifier(number)
        value = msgspec.json.encode({"id": named, "account": account, "amount": number % 100})
        return Instruction(named, producer, PartitionNumber(partition), value)

    def _pair(self, site: SiteName) -> Pair:
        sites = self.configurations[site].sites
        other = self.configurations[site].other_site(site)
        return Pair(site, sites[site].database.dsn.reveal(), sites[other].database.dsn.reveal())


def identifier(number: int) -> str:
    """The identifier of an instruction."""
    return f"d-{number}"


def _columns(batch: list[Instruction]) -> tuple[list[str], list[int], list[str], list[bytes]]:
    return (
        [str(one.producer) for one in batch],
        [int(one.partition) for one in batch],
        [one.id for one in batch],
        [one.value for one in batch],
    )
