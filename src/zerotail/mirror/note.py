"""What a running mirror says of itself: a file in the folder for state, written whole every second.

`mirror status` and `mirror advise` read it on the machine where the mirror runs. What must be right (how far a
partition is, what is missing) is asked of Kafka; this file says what only the process knows: what it does, why it
waits, how its time goes, and what its Kafka clients measure.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Event, Lock, Thread

import msgspec

from zerotail.kafka.copy_order import Outcome
from zerotail.private import make_folder, write_file

_WRITE_SECONDS = 1.0
STALE_SECONDS = 5.0
"""A file that is older belongs to a mirror that does not run any more."""


class PartitionNote(msgspec.Struct):
    """One partition since the mirror started."""

    topic: str
    partition: int
    state: str = "waiting"
    note: str = ""
    kind: str = ""
    copied: int = 0
    left_out: int = 0
    bytes: int = 0
    transactions: int = 0
    reading_seconds: float = 0.0
    sending_seconds: float = 0.0
    metrics: dict[str, float] = msgspec.field(default_factory=dict)


class FlowNote(msgspec.Struct):
    """One flow of a mirror that runs."""

    flow: str
    engine: str
    process: int
    started_at: float
    written_at: float = 0.0
    state: str = "starting"
    partitions: list[PartitionNote] = msgspec.field(default_factory=list)
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    """Of the whole process, where no partition can be named."""

    @property
    def runs(self) -> bool:
        """Whether it was written a moment ago."""
        return time.time() - self.written_at < STALE_SECONDS


def note_path(folder: Path, flow: str) -> Path:
    """Where the note of a flow is."""
    return folder / f"mirror-{flow}.json"


def read_note(folder: Path, flow: str) -> FlowNote | None:
    """What a flow's mirror has said last on this machine, if anything."""
    try:
        return msgspec.json.decode(note_path(folder, flow).read_bytes(), type=FlowNote)
    except (OSError, msgspec.DecodeError):
        return None


class NoteWriter:
    """Gathers what tasks report, from any thread, and writes it."""

    def __init__(self, folder: Path, flow: str, engine: str) -> None:
        self._path = note_path(folder, flow)
        self._note = FlowNote(flow, engine, os.getpid(), time.time())
        self._partitions: dict[tuple[str, int], PartitionNote] = {}
        self._lock = Lock()
        self._closing = Event()
        make_folder(folder)
        self._thread = Thread(target=self._keep_writing, name="zerotail mirror note", daemon=True)
        self._thread.start()

    def hear(self, topic: str, partition: int, outcome: Outcome) -> None:
        """Add the outcome of one pass."""
        if partition < 0:
            return
        with self._lock:
            one = self._partitions.setdefault((topic, partition), PartitionNote(topic, partition))
            one.state, one.note, one.kind = outcome.state, outcome.note, outcome.kind
            one.copied += outcome.copied
            one.left_out += outcome.left_out
            one.bytes += outcome.bytes
            one.transactions += outcome.transactions
            one.reading_seconds += outcome.reading_seconds
            one.sending_seconds += outcome.sending_seconds
            one.metrics.update(outcome.metrics)
            self._note.state = "running"

    def measure(self, state: str, metrics: dict[str, float]) -> None:
        """Say what is known of the process as a whole."""
        with self._lock:
            self._note.state, self._note.metrics = state, metrics

    def close(self) -> None:
        """Write the last word."""
        with self._lock:
            self._note.state = "ended"
        self._closing.set()
        self._thread.join(2 * _WRITE_SECONDS)

    def _keep_writing(self) -> None:
        while not self._closing.wait(_WRITE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        with self._lock:
            self._note.written_at = time.time()
            self._note.partitions = sorted(self._partitions.values(), key=lambda one: (one.topic, one.partition))
            content = msgspec.json.encode(self._note)
        scratch = self._path.with_suffix(".new")
        write_file(scratch, content)
        os.replace(scratch, self._path)
