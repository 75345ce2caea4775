"""Rows that are tried apart: a row is poison when its process dies of it alone, and a process that does not come up
holds nobody up.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from zerotail.core.identity import PartitionNumber, ProducerNumber, TopicName
from zerotail.kafka.cluster import Cluster
from zerotail.postgres.poison import Unfit
from zerotail.spark import alone, door, own_process
from zerotail.spark.alone import Alone
from zerotail.spark.door import Door
from zerotail.spark.door_worker import Begun, Errand, Finished
from zerotail.spark.row_sender import Route, Rows

pytestmark = pytest.mark.fast

SECONDS = 10.0
PLACE = ProducerNumber(1), PartitionNumber(0)
Says = Callable[[int, Errand], Iterator[Begun | Finished]]


def errand(first: int, next_serial: int) -> Errand:
    route = Route("cards", TopicName("cards"), None, numbered=False)
    return Errand(Rows("", Cluster("127.0.0.1:1"), route, *PLACE, 1), first, next_serial)


def sends_all(wanted: Errand) -> Iterator[Begun | Finished]:
    for serial in range(wanted.first, wanted.next_serial):
        yield Begun(serial, bytes(8))
    yield Finished(wanted.next_serial - wanted.first, None)


def dies_at(serial: int, wanted: Errand) -> Iterator[Begun | Finished]:
    for row in range(wanted.first, wanted.next_serial):
        yield Begun(row, bytes(8))
        if row == serial:
            return
    yield Finished(wanted.next_serial - wanted.first, None)


class Tried:
    """A door whose processes do what a test says, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, does: Says) -> None:
        self.errands: list[tuple[int, int]] = []
        self.unfit: list[Unfit] = []
        self.asked: list[int] = []
        self.noted: list[tuple[int, str]] = []
        self.waits: list[str] = []
        tried = self

        class Process:
            def tell(self, wanted: Errand) -> None:
                tried.errands.append((wanted.first, wanted.next_serial))
                self.says = does(len(tried.errands), wanted)

            def hear(self) -> Begun | Finished:
                for said in self.says:
                    return said
                raise EOFError

            def end(self) -> str:
                return "signal SIGKILL"

            kill = end

        monkeypatch.setattr(door, "OwnProcess", lambda _module: Process())
        monkeypatch.setattr(door, "stop_at", lambda _dsn, unfit: self.unfit.append(unfit))
        monkeypatch.setattr(door, "_ask_again", lambda wanted: self.asked.append(wanted.first))
        over = Event()

        def note(_producer: int, _partition: int, sent: int, stopped: str) -> None:
            self.noted.append((sent, stopped))
            over.set()

        self.door = Door(note, lambda _producer, _partition, reason: self.waits.append(reason))
        self.over = over

    def send(self, wanted: Errand) -> None:
        self.door.send(wanted, "a worker died")
        assert self.over.wait(SECONDS)
        ends(self.door.close)


def ends(call: Callable[[], object]) -> None:
    """Within a moment."""
    thread = Thread(target=call, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_row_is_poison_when_its_process_dies_of_it_alone_too(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(monkeypatch, lambda _round, wanted: dies_at(7, wanted))
    tried.send(errand(5, 100))
    assert tried.errands == [(5, 100), (5, 7), (7, 8)]
    assert [unfit.serial for unfit in tried.unfit] == [7]
    assert tried.unfit[0].reason == "the process of its transform dies of it, 2 times out of 2: signal SIGKILL"
    assert tried.noted[0][0] == 2


def test_one_death_makes_no_row_poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody ends the process, or it dies of the memory that all rows together take."""
    tried = Tried(monkeypatch, lambda round_, wanted: dies_at(7, wanted) if round_ == 1 else sends_all(wanted))
    tried.send(errand(5, 100))
    assert (tried.unfit, tried.asked, tried.noted) == ([], [5], [(3, "")])


def test_whatever_dies_at_any_row_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(monkeypatch, lambda _round, wanted: dies_at((wanted.first + wanted.next_serial - 1) // 2, wanted))
    tried.send(errand(1, 50_000))
    assert [unfit.serial for unfit in tried.unfit] == [1]
    assert len(tried.errands) < 30


def test_a_process_that_cannot_be_started_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Tried(monkeypatch, lambda _round, wanted: sends_all(wanted))

    def starts_none(_module: str) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(door, "OwnProcess", starts_none)
    ends(lambda: tried.door.send(errand(5, 100), "a worker died"))
    assert tried.over.wait(SECONDS)
    ends(tried.door.close)
    assert tried.door.places() == frozenset()
    assert (tried.unfit, tried.asked) == ([], [5])
    assert "could not be started: [Errno 11] Resource temporarily unavailable" in tried.waits[-1]


def test_what_ends_the_group_of_a_program_does_not_end_what_it_tries_apart() -> None:
    process = own_process.OwnProcess("zerotail.spark.door_worker")
    try:
        pid = process._process.pid
        assert os.getpgid(pid) != os.getpgid(0)
        assert os.getsid(pid) != os.getsid(0)
    finally:
        process.kill()
        assert process.end() == f"signal {signal.SIGKILL.name}"


def test_a_partition_by_itself_is_closed_while_its_worker_is_being_started(monkeypatch: pytest.MonkeyPatch) -> None:
    starting, started, killed = Event(), Event(), Event()

    class Worker:
        def __init__(self, _module: str) -> None:
            starting.set()
            assert started.wait(SECONDS)

        def tell(self, _what: object) -> None: ...

        def hear(self) -> None:
            assert killed.wait(3 * SECONDS)
            raise EOFError

        def kill(self) -> None:
            killed.set()

        def end(self) -> str:
            return "signal SIGKILL"

    monkeypatch.setattr(alone, "OwnProcess", Worker)
    job = SimpleNamespace(stage=SimpleNamespace(name="settle", partition=PartitionNumber(0)))
    place = SimpleNamespace(head=SimpleNamespace(hint=0), stopped=None)
    by_itself = Alone(job, {PartitionNumber(0): place}, lambda *_: None)  # type: ignore[arg-type, dict-item]
    assert starting.wait(SECONDS)
    closing = Thread(target=by_itself.close, daemon=True)
    closing.start()
    while not by_itself._stop.is_set():
        pass
    started.set()
    closing.join(SECONDS)
    assert not closing.is_alive()
