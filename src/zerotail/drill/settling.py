"""The operator of a drill whose receiver remembers nothing: settles doubts by asking the receiver's own books.

A sender to such a receiver (R3) that finds numbers in doubt waits until somebody has decided about them. In a drill the
one who decides looks into the judge's record, as somebody on the telephone would: what arrived is a beginning of what
was on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from threading import Event, Thread

from zerotail.core.emission import Lane
from zerotail.core.identity import EmissionNumber
from zerotail.drill.rehearsal import Rehearsal
from zerotail.errors import ZerotailError
from zerotail.ports import Done
from zerotail.postgres import doubt
from zerotail.postgres.connection import Connection
from zerotail.postgres.transaction import Session

_LOOK_SECONDS = 0.3
_ANSWER_SECONDS = 3.0


class Settling:
    """Looks again and again, from a thread of its own."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._stop = Event()
        self._thread = Thread(target=self._work, name="settling", daemon=True)

    def __enter__(self) -> Settling:
        if self._rehearsal.layout.receiver_class == "R3":
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            with suppress(ZerotailError):  # a site is out: at the next look
                self._settle()

    def _settle(self) -> None:
        database = Session(self._rehearsal.database, "zerotail drill", patience_seconds=_ANSWER_SECONDS)
        try:
            listed = database.read(doubt.read_open_doubts)
            found = [one for one in listed if not one.settled] if isinstance(listed, list) else []
            for lane, numbers in groupby(found, lambda one: one.lane):
                decided, decide = self._decision(lane, [one.number for one in numbers])
                if isinstance(database.write(decide), Done):  # else a sender of before may still send
                    self._rehearsal.note("act", decided)
        finally:
            database.close()

    def _decision(self, lane: Lane, numbers: list[EmissionNumber]) -> tuple[str, Callable[[Connection], Done]]:
        totals = {one.partition: one.highest for one in self._rehearsal.totals()}
        arrived = [number for number in numbers if number <= totals.get(lane.partition, 0)]
        missing = numbers[len(arrived) :]
        span = f"{numbers[0]} to {numbers[-1]}"
        said = f"doubts of {lane.channel}/{lane.partition}, {span}: {len(arrived)} had arrived"

        def settle(connection: Connection) -> Done:
            done = Done()
            for some, decision in ((arrived, doubt.SENT), (missing, doubt.NOT_SENT)):
                if some:
                    done = doubt.settle(connection, lane, some[0], some[-1], decision, "drill")
            return done

        return said, settle
