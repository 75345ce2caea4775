"""Rows that other producers must not wait for: records are made of them in a process of its own (E13).

A row at which a transform hangs, or of which its process dies, would hold up every producer of the application: one
query serves them all. So the rows in question are left out of the batches, with whatever their producer has behind them
in that partition, and tried here.

1. A transform that hangs is interrupted here (`patience.py`), and the row is poison at the door.
2. So is a row of which the process dies: each is named before the transform gets it.
3. Behind that the producer is asked to send again from where the stage stands, as by a stage that misses something.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from threading import Event, Lock, Thread, current_thread

from zerotail.core.identity import PartitionNumber, ProducerNumber, Serial
from zerotail.errors import Unavailable
from zerotail.ports import Done
from zerotail.postgres.feed import send_again
from zerotail.postgres.poison import Unfit
from zerotail.postgres.transaction import Session
from zerotail.spark.door_worker import Begun, Errand, Finished
from zerotail.spark.own_process import GONE, OwnProcess
from zerotail.spark.row_sender import stop_at

Place = tuple[ProducerNumber, PartitionNumber]
Note = Callable[[ProducerNumber, PartitionNumber, int, str], None]
Wait = Callable[[ProducerNumber, PartitionNumber, str], None]
_PATIENCE_SECONDS = 5.0
_AGAIN_SECONDS = 1.0


class Door:
    """The errands that are carried out at this moment, one for each producer and partition at most."""

    def __init__(self, note: Note, wait: Wait) -> None:
        """`note` hears what was sent and at which row a producer stands, `wait` why it waits."""
        self.note = note
        self._wait = wait
        self._lock = Lock()
        self._running: dict[Place, tuple[Thread, OwnProcess]] = {}
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
            started = Event()
            thread = Thread(target=self._run, args=(place, errand, started), name=f"door {place}", daemon=True)
            thread.start()
            started.wait()

    def close(self) -> None:
        """End whatever is tried."""
        with self._lock:
            self._stop.set()
            running = list(self._running.values())
        for thread, process in running:
            process.kill()
            thread.join()

    def _run(self, place: Place, errand: Errand, started: Event) -> None:
        # It ends with the thread that starts it: so this one, which hears it.
        process = OwnProcess("zerotail.spark.door_worker")
        self._running[place] = (current_thread(), process)
        started.set()
        try:
            finished = _hear_out(process, errand)
            if not self._stop.is_set():
                self._conclude(place, errand, finished)
        finally:
            process.end()
            with self._lock:
                self._running.pop(place, None)

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


def _hear_out(process: OwnProcess, errand: Errand) -> Finished:
    begun: Begun | None = None
    try:
        process.tell(errand)
        while not isinstance(said := process.hear(), Finished):
            begun = said
    except GONE:
        how = process.end()
        if begun is None:
            return Finished(0, None, f"the process that was to try its rows did not come up: {how}")
        rows = errand.rows
        reason = f"the process of its transform dies of it: {how}"
        return Finished(0, Unfit(rows.producer, rows.partition, Serial(begun.serial), begun.digest, reason))
    return said


def _ask_again(errand: Errand) -> None:
    rows = errand.rows
    with closing(Session(rows.dsn, "zerotail producer", patience_seconds=_PATIENCE_SECONDS)) as session:
        asked = session.write(lambda c: send_again(c, rows.producer, rows.partition, Serial(errand.first)))
    if not isinstance(asked, Done):
        raise Unavailable("the database does not answer", code="ZT301")
