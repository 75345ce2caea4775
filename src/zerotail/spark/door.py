"""Rows that other producers must not wait for: records are made of them in a process of its own (E13).

A row at which a transform hangs, or of which its process dies, would hold up every producer of the application: one
query serves them all. So the rows in question are left out of the batches, with whatever their producer has behind them
in that partition, and tried here.

1. A transform that hangs is interrupted here (`patience.py`), and the row is poison at the door.
2. So is a row of which the process dies, twice: each is named before the transform gets it. Behind the first death
   another process sends the rows in front of it, and the row is tried alone: a process may have died of something else.
3. Behind that the producer is asked to send again from where the stage stands, as by a stage that misses something.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from subprocess import SubprocessError
from threading import Event, Lock, Thread

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial
from zerotail.errors import Unavailable
from zerotail.ports import Done
from zerotail.postgres.feed import send_again
from zerotail.postgres.poison import Unfit
from zerotail.postgres.transaction import Session
from zerotail.spark.door_worker import Begun, Errand, Finished
from zerotail.spark.own_process import GONE, OwnProcess, end_thread
from zerotail.spark.row_sender import stop_at

Place = tuple[ProducerNumber, PartitionNumber]
Note = Callable[[ProducerNumber, PartitionNumber, int, str], None]
Wait = Callable[[ProducerNumber, PartitionNumber, str], None]
_PATIENCE_SECONDS = 5.0
_AGAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Died:
    """A process has died at a row."""

    begun: Begun
    how: str


class Door:
    """The errands that are carried out at this moment, one for each producer and partition at most."""

    def __init__(self, note: Note, wait: Wait) -> None:
        """`note` hears what was sent and at which row a producer stands, `wait` why it waits."""
        self.note = note
        self._wait = wait
        self._lock = Lock()
        self._running: dict[Place, Thread] = {}
        self._processes: dict[Place, OwnProcess] = {}
        self._stop = Event()

    def places(self) -> frozenset[Place]:
        """Whose rows are tried here now."""
        with self._lock:
            return frozenset(self._running)

    def send(self, errand: Errand, why: str) -> None:
        """Try these rows here."""
        place = (errand.rows.producer, errand.rows.partition)
        self._wait(*place, f"{why}: it is tried in a process of its own")
        with self._lock:
            if place in self._running or self._stop.is_set():
                return
            thread = Thread(target=self._run, args=(place, errand), name=f"door {place}", daemon=True)
            self._running[place] = thread
        thread.start()

    def close(self) -> None:
        """End whatever is tried."""
        with self._lock:
            self._stop.set()
            running = dict(self._running)
        for place, thread in running.items():
            end_thread(thread, partial(self._processes.get, place))

    def _run(self, place: Place, errand: Errand) -> None:
        try:
            finished = self._carry_out(place, errand)
            if not self._stop.is_set():
                self._conclude(place, errand, finished)
        finally:
            with self._lock:
                self._running.pop(place, None)

    def _carry_out(self, place: Place, errand: Errand) -> Finished:
        """What came of it; a row of which a process died is tried alone before that is believed."""
        heard = self._hear_out(place, errand)
        if isinstance(heard, Finished):
            return heard
        suspect = heard.begun.serial
        front = Finished(0, None)
        if suspect > errand.first:
            front = self._carry_out(place, replace(errand, next_serial=suspect))
            if front.unfit is not None or front.problem:
                return front
        heard = self._hear_out(place, replace(errand, first=suspect, next_serial=suspect + 1))
        if isinstance(heard, Finished):
            return replace(heard, sent=front.sent + heard.sent)
        rows, begun = errand.rows, heard.begun
        reason = f"the process of its transform dies of it, 2 times out of 2: {heard.how}"
        return Finished(front.sent, Unfit(rows.producer, rows.partition, Serial(suspect), begun.digest, reason))

    def _hear_out(self, place: Place, errand: Errand) -> Finished | _Died:
        if self._stop.is_set():
            return Finished(0, None)
        begun: Begun | None = None
        try:
            # It ends with the thread that starts it: so this one, which hears it.
            process = OwnProcess("zerotail.spark.door_worker")
        except (OSError, SubprocessError) as error:
            return Finished(0, None, f"the process that was to try its rows could not be started: {error}")
        self._processes[place] = process
        try:
            process.tell(errand)
            while not isinstance(said := process.hear(), Finished):
                begun = said
        except GONE:
            how = process.end()
            if begun is None:
                return Finished(0, None, f"the process that was to try its rows did not come up: {how}")
            return _Died(begun, how)
        finally:
            del self._processes[place]
            process.end()
        return said

    def _conclude(self, place: Place, errand: Errand, finished: Finished) -> None:
        unfit = finished.unfit
        while not self._stop.is_set():
            try:
                if unfit is not None:
                    stop_at(errand.rows.dsn, unfit)
                _ask_again(errand)
            except Unavailable as error:
                self._wait(*place, error.message)
                self._stop.wait(_AGAIN_SECONDS)
            else:
                break
        self.note(*place, finished.sent, f"serial {unfit.serial}: {unfit.reason}" if unfit else "")
        if finished.problem:
            self._wait(*place, finished.problem)


def _ask_again(errand: Errand) -> None:
    rows = errand.rows
    with closing(Session(rows.dsn, "zerotail producer", patience_seconds=_PATIENCE_SECONDS)) as session:
        asked = session.write(lambda c: send_again(c, rows.producer, rows.partition, Serial(errand.first)))
    if not isinstance(asked, Done):
        raise Unavailable("the database does not answer", code="ZT301")
