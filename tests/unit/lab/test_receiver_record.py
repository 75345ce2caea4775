"""The file of attempts: what is on disk, and when."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerotail.errors import Broken
from zerotail.lab.receiver.protocol import Attempt, ClaimAttempt, ReceiverClass, Verdict
from zerotail.lab.receiver.record import FILE_NAME, Record

pytestmark = pytest.mark.fast


def claim(sequence: int) -> ClaimAttempt:
    return ClaimAttempt(sequence, "bank", 0, sequence, 1, "east", 0.0, ReceiverClass.R2, Verdict.ACCEPTED)


def open_record(folder: Path) -> tuple[Record, list[Attempt]]:
    known: list[Attempt] = []
    return Record(folder, known.append), known


def test_settling_waits_for_the_flush_and_one_flush_serves_everybody_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed_sizes: list[int] = []
    has_begun, may_flush = threading.Event(), threading.Event()

    def flush(file: int) -> None:
        has_begun.set()
        assert may_flush.wait(10)
        flushed_sizes.append(os.fstat(file).st_size)

    monkeypatch.setattr(os, "fdatasync", flush)

    async def story() -> None:
        record, _ = open_record(tmp_path)
        record.append(claim(1))
        first = asyncio.create_task(record.settle())
        assert await asyncio.to_thread(has_begun.wait, 10)
        for sequence in range(2, 12):
            record.append(claim(sequence))
        others = [asyncio.create_task(record.settle()) for _ in range(5)]
        done, _ = await asyncio.wait([first, *others], timeout=0.05)
        assert not done
        assert record.page(0, 100) == []
        may_flush.set()
        await asyncio.gather(first, *others)
        assert len(record.page(0, 100)) == 11

    asyncio.run(story())
    assert len(flushed_sizes) == 2
    assert flushed_sizes[1] == (tmp_path / FILE_NAME).stat().st_size


def test_who_gives_up_waiting_does_not_stop_the_flush(tmp_path: Path) -> None:
    async def story() -> None:
        record, _ = open_record(tmp_path)
        record.append(claim(1))
        impatient = asyncio.create_task(record.settle())
        patient = asyncio.create_task(record.settle())
        await asyncio.sleep(0)
        impatient.cancel()
        await patient
        assert len(record.page(0, 1)) == 1

    asyncio.run(story())


def test_after_a_failed_flush_nothing_settles_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    async def story() -> None:
        record, _ = open_record(tmp_path)
        record.append(claim(1))
        monkeypatch.setattr(os, "fdatasync", fail)
        with pytest.raises(Broken, match="Input/output error"):
            await record.settle()
        monkeypatch.undo()
        record.append(claim(2))
        with pytest.raises(Broken):
            await record.settle()

    asyncio.run(story())


@settings(deadline=None)
@given(count=st.integers(0, 1100), since=st.integers(0, 1200), limit=st.integers(1, 600), kept=st.integers(0, 60))
def test_any_page_is_the_same_before_and_after_a_restart(
    tmp_path_factory: pytest.TempPathFactory, count: int, since: int, limit: int, kept: int
) -> None:
    folder = tmp_path_factory.mktemp("record")

    async def write() -> list[bytes]:
        record, _ = open_record(folder)
        for sequence in range(1, count + 1):
            record.append(claim(sequence))
        await record.settle()
        page = record.page(since, limit)
        record.close()
        return page

    page = asyncio.run(write())
    expected = range(since + 1, min(since + limit, count) + 1)
    assert [msgspec.json.decode(line)["sequence"] for line in page] == list(expected)

    half_line = msgspec.json.encode(claim(count + 1))[:kept]
    with (folder / FILE_NAME).open("ab") as file:
        file.write(half_line)
    record, known = open_record(folder)
    assert known == [claim(sequence) for sequence in range(1, count + 1)]
    assert record.page(since, limit) == page
    record.close()
