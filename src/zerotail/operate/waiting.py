"""Acts do not wait in silence, and not for ever.

1. `told_regularly`: every few seconds it is said what is waited for, also while a command or a server keeps everything.
2. `ended_at`: at its deadline an act is interrupted, wherever it is, as by Ctrl-C: that every step can be interrupted
   is shown anyway, and a COMMIT under way is left to end (`postgres.transaction.signals_held_back`). Outside of the
   main thread no signal arrives; there the driver looks at the deadline between two effects.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread, Timer, current_thread, main_thread

from zerotail import ports
from zerotail.deadline import Deadline
from zerotail.postgres.transaction import OUT_OF_TIME

SAY_EVERY_SECONDS = 3.0


@contextmanager
def told_regularly(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` every few seconds for the length of a block."""
    over = Event()

    def keep_telling() -> None:
        while not over.wait(SAY_EVERY_SECONDS):
            tell()

    teller = Thread(target=keep_telling, name="zerotail tells", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@contextmanager
def ended_at(deadline: Deadline) -> Iterator[None]:
    """Interrupt the block at the deadline. Whoever catches the `KeyboardInterrupt` asks the deadline whose it was."""
    if current_thread() is not main_thread():
        yield
        return
    left, lock = Event(), Lock()

    def interrupt() -> None:
        with lock:
            if not left.is_set():
                signal.pthread_kill(main_thread().ident or 0, OUT_OF_TIME)

    before = signal.signal(OUT_OF_TIME, signal.default_int_handler)
    timer = Timer(deadline.seconds_left, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            left.set()
        timer.cancel()
        signal.signal(OUT_OF_TIME, before)


def awaited(effect: ports.Effect) -> str | None:
    """What is waited for while an effect is under way, if that can take long; None: what was waited for before."""
    match effect:
        case ports.FenceSite():
            return f"the command that shuts {effect.site} off"
        case ports.Promote():
            return f"the database of {effect.site} to become a primary"
        case ports.ShutDown():
            return f"the database of {effect.site} to stop"
        case ports.KeepTail():
            return f"what only {effect.site} has to be read"
        case ports.CopyDatabase():
            return f"the command that copies the database of {effect.source} to {effect.site}"
        case ports.ReadJournal():
            return f"the journal of {effect.stage}, which is replayed"
        case ports.RestoreTopic():
            return f"the topic of {effect.stage}, partition {effect.partition}, to be completed and proven"
        case ports.ReadLogEnd():
            return f"Kafka, for the end of {effect.topic}, partition {effect.partition}"
        case ports.ClaimAtReceiver():
            return f"the receiver of {effect.lane.channel}, partition {effect.lane.partition}"
        case ports.OpenEpoch() | ports.StopWaiting() | ports.ChangeEpoch() | ports.RecordRejoined():
            return f"the database of {effect.site}"
        case _:
            return None
