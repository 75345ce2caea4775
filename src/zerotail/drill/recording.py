"""Writing a history to files, one per recorder, and reading all of them back as one.

A file is `RECORDER.jsonl`: one JSON object per line, appended, never rewritten. A recorder that is killed in
the middle of a line leaves a torn one at the end; that is expected and reported. A line that cannot be read
anywhere else, or a number missing in a recorder's own counting, means that the record is damaged: whoever
judges it must not call the run passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from zerotail.drill.history import AnyEvent, Event, merged
from zerotail.garbage import collection_paused
from zerotail.private import make_folder, open_file

E = TypeVar("E", bound=Event)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class HistoryWriter:
    """Appends the events of one recorder to its file, each in one write; usable as a context manager."""

    def __init__(self, directory: Path, recorder: str, *, now: Callable[[], int] = time.monotonic_ns) -> None:
        make_folder(directory)
        self._file = open_file(directory / f"{recorder}.jsonl", "xb", buffering=0)
        self._recorder = recorder
        self._now = now
        self._sequence = 0

    def append(self, event: E) -> E:
        """Stamp an event with time, recorder and sequence, write it, and return it as written."""
        self._sequence += 1
        stamped = replace(event, time=self._now(), recorder=self._recorder, sequence=self._sequence)
        self._file.write(_encoder.encode(stamped) + b"\n")
        return stamped

    def close(self) -> None:
        """Close the file; a process that dies without this loses nothing that was appended."""
        self._file.close()

    def __enter__(self) -> HistoryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class History(msgspec.Struct, frozen=True):
    """The merged events of a run, and what is wrong with the record itself.

    `torn`: recorders whose last line was cut off by their death, which is harmless. `damaged`: sentences
    about lines that cannot be read or are missing, which leave a verdict undecided.
    """

    events: Sequence[AnyEvent]
    torn: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


@collection_paused()
def read_history(directory: Path) -> History:
    """Read and merge the files of all recorders in a directory."""
    events: list[AnyEvent] = []
    torn: list[str] = []
    damaged: list[str] = []
    for path in sorted(directory.glob("*.jsonl"), key=lambda path: path.stem):
        content = path.read_bytes()
        complete, _, rest = content.rpartition(b"\n")
        if rest:
            torn.append(path.stem)
        recorded = _read_lines(path.name, complete, damaged)
        numbers = [0, *(event.sequence for event in recorded)]
        damaged += [
            f"{path.name}: event {after} follows event {before}"
            for before, after in pairwise(numbers)
            if after != before + 1
        ]
        events += recorded
    # Recorders are in order by name and each by its own numbers: a stable sort by time merges them.
    events = merged(events) if damaged else sorted(events, key=attrgetter("time"))
    return History(events=events, torn=tuple(torn), damaged=tuple(damaged))


def _read_lines(name: str, content: bytes, damaged: list[str]) -> list[AnyEvent]:
    try:
        return _decoder.decode_lines(content)
    except msgspec.MsgspecError:
        pass
    readable: list[AnyEvent] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            readable.append(_decoder.decode(line))
        except msgspec.MsgspecError as error:
            damaged.append(f"{name}: line {number} cannot be read: {error}")
    return readable
