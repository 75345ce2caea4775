"""A steady load on every cell at once, from a thread of its own.

Each tick every cell gets the same number of new records, spread over its partitions, so that a fault strikes all of
them under the same load; each has a client of its own, so that none waits for another's answer. Between rounds the load
rests: nothing is written, and everything that was queued has got its answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from zerotail.deadline import Deadline, wait_until
from zerotail.drill.durability.cells import Cell
from zerotail.drill.durability.ledger import Ledger
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.numbered import NumberedWriter

_TICK_SECONDS = 0.01
_ANSWER_SECONDS = 60.0
_FLOWING = 50


class Load:
    """Writes to the topics of the cells while it is not at rest."""

    def __init__(self, cluster: Cluster, topics: Mapping[str, Cell], partitions: int, rate: float) -> None:
        self.ledgers = {topic: Ledger() for topic in topics}
        self._partitions = partitions
        self._step = max(1, round(rate * _TICK_SECONDS))
        self._writers = {
            topic: NumberedWriter(cluster, cell.for_producer(), self._acknowledge) for topic, cell in topics.items()
        }
        self._writing = threading.Event()
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def go(self) -> None:
        """Begin a round, and write; returns when acknowledgements come in from every cell."""
        for ledger in self.ledgers.values():
            ledger.begin_round()
        self._writing.set()
        # A new topic has its leaders and copies on paper some time before brokers have made its files.
        wait_until(
            f"{_FLOWING} records of every cell are acknowledged",
            lambda: all(ledger.acknowledged_in_round >= _FLOWING for ledger in self.ledgers.values()),
            Deadline.after(_ANSWER_SECONDS),
        )

    def rest(self) -> None:
        """Write nothing more."""
        with self._turn:
            self._writing.clear()

    def wait_until_answered(self) -> None:
        """Return when everything that was queued has got its answer; every partition has a leader."""
        deadline = Deadline.after(_ANSWER_SECONDS)
        idle = [writer.wait_until_idle(deadline) for writer in self._writers.values()]
        if not all(idle):
            raise Unavailable(
                f"records got no answer within {_ANSWER_SECONDS:.0f} s after the cluster was whole again.", code="ZT561"
            )

    def close(self) -> None:
        """End the thread and the clients."""
        self._ended.set()
        self._thread.join()
        for writer in self._writers.values():
            writer.close()

    def _acknowledge(self, topic: str, number: int) -> None:
        self.ledgers[topic].acknowledge(number)

    def _run(self) -> None:
        tick = time.monotonic()
        while not self._ended.is_set():
            with self._turn:
                if self._writing.is_set():
                    self._write_once()
            for writer in self._writers.values():
                writer.poll()
            # A tick that came too late is not made up for: the load would come in bursts.
            tick = max(tick + _TICK_SECONDS, time.monotonic())
            self._ended.wait(max(0.0, tick - time.monotonic()))

    def _write_once(self) -> None:
        for topic, ledger in self.ledgers.items():
            numbers = ledger.take(self._step)
            for partition in range(self._partitions):
                self._writers[topic].write(topic, partition, numbers[partition :: self._partitions])
