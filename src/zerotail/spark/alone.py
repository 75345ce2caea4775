"""A partition that others must not wait for: it goes on in a process of its own (E18).

A record at which a handler hangs, or of which its process dies, would hold up every partition of its stage: Spark gives
out one batch after the other. So its partition is left out of the batches, and taken here, by a worker process for it
alone. One thread of the driver gives the orders.

1. A handler that hangs is interrupted there (`patience.py`), and the record stops the partition like any at which the
   handler fails.
2. A worker that dies is started again with fewer records, until it dies of a single one, and again of the same one.
   That record stops the partition, with the way in which the worker died for a reason.
3. It goes on here for as long as the query runs; the next start of that takes the partition in as any other.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import replace
from threading import Event, Thread

from zerotail.core.identity import PartitionNumber
from zerotail.core.poison import Poison
from zerotail.flow.stage import Place, Taken
from zerotail.ports import Done, RecordPoison, Unreachable
from zerotail.spark.alone_worker import Begun, Finished, Job, Order
from zerotail.spark.own_process import GONE, OwnProcess, end_thread
from zerotail.spark.results import unpack_outcome
from zerotail.wiring import SiteAdapters

_FIRST_LIMIT = 256
_MOST = 50_000
_GROWS, _SHRINKS = 4, 32
_DEATHS = 2
"""Of one record alone, before it is believed to be the reason."""
_IDLE_SECONDS = 0.05
_UNREAD_LOOKS = 100
"""In a row, before the query starts anew: what cannot be read is said, and decided about, there."""

Note = Callable[[PartitionNumber, Taken], None]


class Alone:
    """One partition in a process of its own."""

    def __init__(
        self,
        job: Job,
        places: MutableMapping[PartitionNumber, Place],
        note: Note,
        may_take: Callable[[], bool] = lambda: True,
    ) -> None:
        self._job = job
        self._partition = job.stage.partition
        self._places = places
        self._note = note
        self._may_take = may_take
        self._stop = Event()
        self._worker: OwnProcess | None = None
        self._over = False
        self._hint = places[self._partition].head.hint
        self._limit = _FIRST_LIMIT
        self._deaths = 0
        self._unread = 0
        self._thread = Thread(target=self._run, name=f"alone {job.stage.name}/{self._partition}", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it cannot go on here: only a new start can find out why."""
        return self._over

    def close(self) -> None:
        """End the worker, whatever it is doing."""
        self._stop.set()
        end_thread(self._thread, lambda: self._worker)

    def _run(self) -> None:
        try:
            while not (self._stop.is_set() or self._over):
                place = self._places[self._partition]
                if place.stopped is not None or not self._may_take():
                    self._stop.wait(_IDLE_SECONDS)
                else:
                    self._take(place)
        finally:
            self._over = True
            self._end_worker()

    def _take(self, place: Place) -> None:
        begun: Begun | None = None
        try:
            worker = self._started()
            worker.tell(Order(place, self._hint, self._limit))
            begun = worker.hear()
            finished: Finished = worker.hear()
        except GONE:
            if not self._stop.is_set():
                self._has_died(place, begun)
            return
        outcome, self._hint = unpack_outcome(finished.outcome), finished.hint
        self._unread = self._unread + 1 if finished.unread else 0
        if self._unread == _UNREAD_LOOKS:
            self._over = True
        elif outcome is None:
            self._stop.wait(_IDLE_SECONDS)
        elif isinstance(outcome, Taken):
            self._deaths = 0
            self._limit = min(_GROWS * self._limit, _MOST)
            self._pass_on(place, outcome)
        else:
            self._over = True

    def _has_died(self, place: Place, begun: Begun | None) -> None:
        how = self._end_worker()
        if begun is None or begun.first is None:
            self._stop.wait(1.0)  # it did not come up, or died of no record at all
            return
        if begun.count > 1:
            self._limit = max(1, min(self._limit, begun.count) // _SHRINKS)
            return
        self._deaths += 1
        if self._deaths < _DEATHS:
            return
        self._deaths = 0
        producer, serial = begun.first
        reason = f"its process dies of it, {_DEATHS} times out of {_DEATHS}: {how}"
        poison = Poison(producer, serial, place.head.next_position, begun.digest, reason)
        adapters = SiteAdapters(self._job.settings)
        try:
            stage = self._job.stage
            stored = adapters.carry_out(RecordPoison(stage.name, stage.partition, place.head.token, poison))
        finally:
            adapters.close()
        if isinstance(stored, Done):
            self._pass_on(place, Taken(place.head, 0, 0, 0, 0, 0, stopped=poison))
        elif not isinstance(stored, Unreachable):
            self._over = True

    def _pass_on(self, place: Place, taken: Taken) -> None:
        self._places[self._partition] = replace(place, head=taken.head, stopped=taken.stopped)
        self._note(self._partition, taken)

    def _started(self) -> OwnProcess:
        if self._worker is None:
            self._worker = OwnProcess("zerotail.spark.alone_worker")
            self._worker.tell(self._job)
        return self._worker

    def _end_worker(self) -> str:
        """How it ended."""
        worker, self._worker = self._worker, None
        return "it did not come up" if worker is None else worker.end()
