"""Histories on disk: one file per recorder, read back as one, with damage told."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from histories import clean
from zerotail.core.identity import ProducerName
from zerotail.core.verdict import Outcome
from zerotail.drill.checker import SIMULATED, check
from zerotail.drill.history import AnyEvent, StateReached, SubmitAccepted, hop_producer, merged
from zerotail.drill.recording import HistoryWriter, read_history

pytestmark = pytest.mark.fast


def write(directory: Path, recorder: str, *states: str, first_time: int = 1) -> Path:
    with HistoryWriter(directory, recorder, now=count(first_time, 10).__next__) as writer:
        for state in states:
            writer.append(StateReached(state=state))
    return directory / f"{recorder}.jsonl"


def states(directory: Path) -> list[str]:
    return [event.state for event in read_history(directory).events if isinstance(event, StateReached)]


def test_events_of_all_recorders_are_merged_by_time_recorder_and_sequence(tmp_path: Path) -> None:
    write(tmp_path, "west", "w1", "w2", first_time=1)
    write(tmp_path, "east", "e1", "e2", first_time=1)
    write(tmp_path, "outside", "o1", first_time=5)
    assert states(tmp_path) == ["e1", "w1", "o1", "e2", "w2"]


def test_recorders_whose_names_begin_alike_are_merged_by_name(tmp_path: Path) -> None:
    for recorder in ("emitter-west", "emitter", "emitter.2"):
        write(tmp_path, recorder, recorder)
    assert states(tmp_path) == ["emitter", "emitter-west", "emitter.2"]
    assert list(read_history(tmp_path).events) == merged(read_history(tmp_path).events)


def test_a_written_history_is_read_back_as_it_was_and_judged_alike(tmp_path: Path) -> None:
    events, expect = clean(7)
    recorders = {event.recorder for event in events}
    for recorder in recorders:
        own = [event for event in events if event.recorder == recorder]
        with HistoryWriter(tmp_path, recorder, now=iter([event.time for event in own]).__next__) as writer:
            for event in own:
                writer.append(event)
    history = read_history(tmp_path)
    assert list(history.events) == merged(events)
    assert history.torn == history.damaged == ()
    assert check(tmp_path, expect) == check(merged(events), expect)
    assert check(tmp_path, expect).outcome is Outcome.PASSED


def test_made_up_histories_use_every_kind_of_event_but_the_mark_of_a_state() -> None:
    """So that every rule of the checker is tried. It says nothing about drills, which write fewer kinds."""
    used = {type(event) for seed in range(60) for event in clean(seed)[0]}
    assert set(get_args(AnyEvent)) - used == {StateReached}


def test_a_torn_last_line_is_tolerated_and_told(tmp_path: Path) -> None:
    path = write(tmp_path, "emitter", "one", "two")
    path.write_bytes(path.read_bytes() + b'{"kind":"state-reached","sta')
    history = read_history(tmp_path)
    assert states(tmp_path) == ["one", "two"]
    assert history.torn == ("emitter",)
    assert history.damaged == ()
    assert check(history, SIMULATED).notes == ("the last line of emitter is torn",)


@pytest.mark.parametrize("bad", [b"{", b"\xff\xfe", b'{"kind":"unheard-of"}', b'{"kind":"submit-accepted"}'])
def test_a_line_that_cannot_be_read_leaves_the_verdict_open(tmp_path: Path, bad: bytes) -> None:
    path = write(tmp_path, "client", "one", "two", "three")
    first, _, third = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, bad, third, b""]))
    history = read_history(tmp_path)
    assert states(tmp_path) == ["one", "three"]
    assert any("line 2 cannot be read" in sentence for sentence in history.damaged)
    assert "N1" in check(history, SIMULATED).open_rules


def test_a_missing_line_leaves_the_verdict_open(tmp_path: Path) -> None:
    path = write(tmp_path, "client", "one", "two", "three")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    history = read_history(tmp_path)
    assert history.damaged == ("client.jsonl: event 3 follows event 1",)
    assert "N1" in check(history, SIMULATED).open_rules


def test_a_missing_first_line_is_seen_too(tmp_path: Path) -> None:
    path = write(tmp_path, "client", "one", "two")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[1])
    assert read_history(tmp_path).damaged == ("client.jsonl: event 2 follows event 0",)


def test_a_recorder_never_overwrites_the_file_of_another(tmp_path: Path) -> None:
    write(tmp_path, "client", "one")
    with pytest.raises(FileExistsError):
        HistoryWriter(tmp_path, "client")


def test_an_empty_directory_is_an_empty_history_and_proves_nothing(tmp_path: Path) -> None:
    assert read_history(tmp_path).events == []
    assert check(tmp_path, SIMULATED).outcome is Outcome.UNDECIDED


def test_every_event_survives_its_json_whatever_the_order_of_its_keys() -> None:
    decoder = msgspec.json.Decoder(AnyEvent)
    rng = random.Random(1)
    for event in clean(11)[0]:
        fields = list(msgspec.to_builtins(event).items())
        rng.shuffle(fields)
        assert decoder.decode(msgspec.json.encode(dict(fields))) == event


def test_an_upstream_partition_is_a_producer_of_its_own() -> None:
    assert hop_producer("settle", 3) == ProducerName("settle/3")


def test_a_writer_returns_the_event_as_it_was_written(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path, "client", now=lambda: 42) as writer:
        written = writer.append(SubmitAccepted(id="u-1"))
    assert (written.time, written.recorder, written.sequence) == (42, "client", 1)
    assert read_history(tmp_path).events == [written]
