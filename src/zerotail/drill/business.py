"""The business of a drill: submits instructions all the time, at whichever site is active, and knows what was accepted.

1. A batch counts as **acknowledged** when its rows are behind the gate; in an exposed epoch, when its commit returned.
2. A batch whose outcome is unknown is submitted again, under the same identifiers, until it is acknowledged: that is
   what a client does that got no answer.
3. Every instruction says in its identifier which number it is, so the judge can tell what is missing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Event, Thread

import msgspec

from zerotail.config import Configuration
from zerotail.core.epoch import Durability
from zerotail.core.identity import Lsn, SiteName
from zerotail.deadline import Deadline
from zerotail.errors import Refused, Unavailable, Unfinished
from zerotail.lab.payments import account_name, partition_of
from zerotail.ports import Standing
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.gate import wait_until_gate_opens
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.position import read_position

_STEP_SECONDS = 0.05
_ANSWER_SECONDS = 2.0
_AGAIN_SECONDS = 0.05
_SUBMIT = """
insert into zerotail.submission (producer, partition, id, value)
select producer.producer, row.partition, row.id, row.value
  from unnest(%s::text[], %s::integer[], %s::text[], %s::bytea[]) as row (name, partition, id, value)
  join zerotail.producer on producer.name = row.name
 where not exists (select from zerotail.instruction as known
                    where known.producer = producer.producer and known.id = row.id)
on conflict do nothing
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """The two databases as one site sees them."""

    site: SiteName
    own: str
    other: str


@dataclass(slots=True)
class Business:
    """Submits at a given rate from a thread of its own."""

    configurations: dict[SiteName, Configuration]
    """As each site sees the world."""
    rate: float
    accounts: int = 2_000
    acknowledged: int = 0
    """So many instructions, from number 1 on, are known to be accepted."""
    _stop: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        """Begin to submit."""
        self._thread = Thread(target=self._work, name="business", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Submit nothing more; what was begun is finished first, or given up when nobody takes it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        size = max(1, int(self.rate * _STEP_SECONDS))
        began, due = time.monotonic(), 0
        while not self._stop.is_set():
            first = self.acknowledged + 1
            self._submit_until_acknowledged(first, size)
            due += size
            # Who was held up does not catch up: a client that waits does not ask for more.
            wait = began + due / self.rate - time.monotonic()
            if wait > 0:
                self._stop.wait(wait)
            else:
                began, due = time.monotonic(), 0

    def _submit_until_acknowledged(self, first: int, size: int) -> None:
        sites = list(self.configurations)
        turn = 0
        while not self._stop.is_set():
            site = sites[turn % len(sites)]
            try:
                if self._submit(self._pair(site), first, size):
                    self.acknowledged = first + size - 1
                    self.configurations = {site: self.configurations[site], **self.configurations}
                    return
            except (Unavailable, Refused, Unfinished):
                pass  # nobody knows: the same batch again, at whichever site is active then
            turn += 1
            self._stop.wait(_AGAIN_SECONDS)

    def _submit(self, pair: Pair, first: int, size: int) -> bool:
        """Whether a site took the batch; False when it is not the active one."""
        with session(pair.own, Deadline.after(_ANSWER_SECONDS)) as connection:
            standing = read_standing(connection)
            if not standing.live_at(pair.site):
                return False
            connection.execute(b"set synchronous_commit = local")
            connection.execute(_SUBMIT.encode(), self._rows(first, size))
            position = read_position(connection)
            self._pass_gate(connection, standing, pair.other, position)
        return True

    def _pass_gate(self, primary: Connection, standing: Standing, other: str, position: Lsn) -> None:
        if standing.lineage.current.durability is Durability.EXPOSED:
            return
        deadline = Deadline.after(_ANSWER_SECONDS)
        with session(other, deadline) as standby:
            wait_until_gate_opens(primary, standby, position, deadline)

    def _rows(self, first: int, size: int) -> tuple[list[str], list[int], list[str], list[bytes]]:
        configuration = next(iter(self.configurations.values()))
        producers = list(configuration.producers.items())
        names, partitions, ids, values = [], [], [], []
        for number in range(first, first + size):
            name, producer = producers[number % len(producers)]
            account = account_name(number * 7919 % self.accounts)
            names.append(str(name))
            partitions.append(partition_of(account, configuration.topics[producer.topic].partitions))
            ids.append(identifier(number))
            values.append(msgspec.json.encode({"id": identifier(number), "account": account, "amount": number % 100}))
        return names, partitions, ids, values

    def _pair(self, site: SiteName) -> Pair:
        sites = self.configurations[site].sites
        other = self.configurations[site].other_site(site)
        return Pair(site, sites[site].database.dsn.reveal(), sites[other].database.dsn.reveal())


def identifier(number: int) -> str:
    """The identifier of an instruction."""
    return f"d-{number}"
