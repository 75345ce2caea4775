"""The queue on the local disk: what was acknowledged is there, whatever happens to the disk or to the process."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest

from zerotail import Spool
from zerotail.core.intake import MOST_VALUE_BYTES
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Broken, Misused, Refused, Unavailable, Unfinished, ZerotailError
from zerotail.spool.folder import list_segments, note_drained, read_drained
from zerotail.spool.spool import LEAST_LIMIT_BYTES
from zerotail.spool.status import observe_spool

pytestmark = pytest.mark.fast

REAL_WRITE = os.write
REAL_SYNC = os.fdatasync


def put(spool: Spool, first: int, last: int) -> None:
    for number in range(first, last + 1):
        spool.put(f"c-{number}", {"number": number}, partition=number % 2)


def names(spool: Spool) -> list[str]:
    return [entry.id for entry in spool.read(spool.drained, most_entries=10**6, most_bytes=10**9)]


def wanted(first: int, last: int) -> list[str]:
    return [f"c-{number}" for number in range(first, last + 1)]


def test_entries_are_read_in_the_order_in_which_they_were_put_also_after_a_start(tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards") as spool:
        put(spool, 1, 5)
        assert spool.put_many([("c-6", b"raw", 7), ("c-7", b"", 0)]) == 6
        assert names(spool) == wanted(1, 7)
    with Spool(tmp_path / "queue") as spool:
        assert spool.producer == "cards"
        put(spool, 8, 9)
        assert names(spool) == wanted(1, 9)
        (sixth,) = [entry for entry in spool.read(5, most_entries=1, most_bytes=1) if entry.sequence == 6]
        assert (sixth.id, sixth.value, sixth.partition) == ("c-6", b"raw", 7)
        assert abs(sixth.put_at_us / 1e6 - time.time()) < 60
        assert spool.waiting == 9


def test_a_receipt_says_when_the_entry_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = Event()
    monkeypatch.setattr(os, "fdatasync", lambda file: (released.wait(30), REAL_SYNC(file)))
    with Spool(tmp_path / "queue", "cards") as spool:
        receipt = spool.put_soon("c-1", b"x")
        waiting = Thread(target=receipt.wait)
        waiting.start()
        assert names(spool) == []
        assert waiting.is_alive()
        released.set()
        assert receipt.wait() == 1
        waiting.join(30)
        assert names(spool) == ["c-1"]


def test_threads_that_put_at_the_same_time_share_an_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def sync(file: int) -> None:
        REAL_SYNC(file)
        synced.append(file)

    monkeypatch.setattr(os, "fdatasync", sync)
    with Spool(tmp_path / "queue", "cards") as spool, ThreadPoolExecutor(32) as threads:
        sequences = list(threads.map(lambda number: spool.put(f"c-{number}", b"x"), range(3200)))
        assert sorted(sequences) == list(range(1, 3201))
        by_sequence = {entry.sequence: entry.id for entry in spool.read(0, most_entries=10**6, most_bytes=10**9)}
        assert [by_sequence[sequence] for sequence in sequences] == [f"c-{number}" for number in range(3200)]
    assert len(synced) < 1600


def test_a_full_spool_refuses_and_keeps_everything(tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards", limit_bytes=LEAST_LIMIT_BYTES, when_full="refuse") as spool:
        stored = fill(spool)
        assert spool.used_bytes <= spool.limit_bytes
        with pytest.raises(Refused, match="is full") as full:
            spool.put("one more", bytes(1000))
        assert full.value.code == "ZT907"
        assert names(spool) == stored
        assert len(list_segments(spool.folder)) >= 4
        spool.release(len(stored) // 2)
        spool.put("one more", bytes(1000))
        assert names(spool) == [*stored[len(stored) // 2 :], "one more"]


def fill(spool: Spool) -> list[str]:
    """Put until there is no room; what was stored."""
    stored: list[str] = []
    try:
        while True:
            spool.put(f"c-{len(stored)}", bytes(1000), patience_seconds=0.01)
            stored.append(f"c-{len(stored)}")
    except (Refused, Unavailable):
        return stored


def test_a_full_spool_blocks_until_there_is_room(tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards", limit_bytes=LEAST_LIMIT_BYTES) as spool:
        fill(spool)
        with pytest.raises(Unavailable, match="is full") as full:
            spool.put("one more", bytes(1000), patience_seconds=0.01)
        assert full.value.code == "ZT908"
        assert "none is dropped to make room" in full.value.why
        blocked = [Thread(target=spool.put, args=(f"late-{number}", bytes(1000))) for number in range(8)]
        for thread in blocked:
            thread.start()
        while any(thread.is_alive() for thread in blocked):
            spool.release(spool.drained + 1)
        assert [name for name in names(spool) if name.startswith("late")]
        assert spool.used_bytes <= spool.limit_bytes


def test_those_who_wait_for_room_are_told_when_the_spool_is_closed(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "queue", "cards", limit_bytes=LEAST_LIMIT_BYTES)
    fill(spool)
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(spool.put, f"late-{number}", bytes(1000)) for number in range(2)]
        wait_until("both wait", lambda: all(one.running() for one in waiting), Deadline.after(30))
        spool.close()
        for one in waiting:
            with pytest.raises(Refused, match="it is closed"):
                one.result(30)


def test_an_entry_that_no_spool_can_hold_is_refused_at_once(tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards", limit_bytes=LEAST_LIMIT_BYTES) as spool:
        with pytest.raises(Refused, match="is full"):
            spool.put("large", bytes(LEAST_LIMIT_BYTES))
        assert spool.put("small", b"") == 1


@pytest.mark.parametrize(
    "change",
    [{"identifier": ""}, {"identifier": "x" * 1001}, {"identifier": "a\0b"}, {"partition": -1}, {"partition": 2**31}],
)
def test_what_the_database_could_not_take_is_never_acknowledged(tmp_path: Path, change: dict[str, object]) -> None:
    unfit: dict[str, object] = {"identifier": "c", "value": b"x", "partition": 0, **change}
    with Spool(tmp_path / "queue", "cards") as spool:
        with pytest.raises(Misused) as error:
            spool.put(**unfit)  # type: ignore[arg-type]
        assert error.value.code == "ZT909"
        with pytest.raises(Misused, match="a value has 900000 bytes at most, and this one has 900001"):
            spool.put("c", bytes(MOST_VALUE_BYTES + 1))
        assert spool.waiting == 0
        assert spool.put("c", bytes(MOST_VALUE_BYTES)) == 1


def spoil_write(failing: Callable[[bytes], int]) -> Callable[[int, bytes], int]:
    """A disk that takes some of the bytes, and then no more."""

    def write(file: int, content: bytes) -> int:
        if bytes(content[:4]) == b"ZTS1":
            taken = failing(content)
            return REAL_WRITE(file, content[:taken])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return write


@pytest.mark.parametrize("taken", [1, 30, 100])
@pytest.mark.parametrize("before", [0, 3])
def test_a_full_disk_makes_put_raise_and_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int, before: int
) -> None:
    with Spool(tmp_path / "queue", "cards") as spool:
        put(spool, 1, before)
        monkeypatch.setattr(os, "write", spoil_write(lambda _: taken))
        for _ in range(3):
            with pytest.raises(Refused, match="No space left") as error:
                spool.put("lost", bytes(500))
            assert error.value.code == "ZT904"
        monkeypatch.setattr(os, "write", REAL_WRITE)
        put(spool, before + 1, before + 3)
        assert names(spool) == wanted(1, before + 3)
    with Spool(tmp_path / "queue") as spool:
        assert (names(spool), spool.cut_bytes) == (wanted(1, before + 3), 0)


def test_after_a_failed_fsync_nothing_is_taken_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fail_once(file: int) -> None:
        calls.append(file)
        if len(calls) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Spool(tmp_path / "queue", "cards") as spool:
        put(spool, 1, 2)
        monkeypatch.setattr(os, "fdatasync", fail_once)
        with pytest.raises(Unfinished, match="Input/output error") as error:
            spool.put("c-3", b"x")
        assert error.value.code == "ZT906"
        for _ in range(2):
            with pytest.raises(Refused, match="takes nothing more") as refused:
                spool.put("c-3", b"x")
            assert refused.value.code == "ZT910"
        assert len(calls) == 1, "it was asked again as if nothing had happened"
        assert names(spool) == wanted(1, 2)
    monkeypatch.setattr(os, "fdatasync", REAL_SYNC)
    with Spool(tmp_path / "queue") as spool:
        spool.put("c-3", b"x")
        assert names(spool)[:2] == wanted(1, 2)


def test_a_torn_tail_of_any_length_is_cut_at_the_start(tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards") as spool:
        put(spool, 1, 3)
    (file,) = list_segments(tmp_path / "queue")
    content = file.path.read_bytes()
    two = len(content) * 2 // 3
    for length in range(two + 1, len(content)):
        for old in list_segments(tmp_path / "queue"):
            old.path.unlink()
        file.path.write_bytes(content[:length])
        assert observe_spool(tmp_path / "queue").torn_bytes == length - two
        with Spool(tmp_path / "queue") as spool:
            assert (names(spool), spool.cut_bytes) == (wanted(1, 2), length - two)
            assert spool.put("c-3", b"again") == 3
        with Spool(tmp_path / "queue") as spool:
            assert (names(spool), spool.cut_bytes) == (wanted(1, 3), 0)


def test_damage_before_the_end_is_never_cut(tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards") as spool:
        put(spool, 1, 3)
    (file,) = list_segments(tmp_path / "queue")
    content = bytearray(file.path.read_bytes())
    content[50] ^= 1
    file.path.write_bytes(content)
    with pytest.raises(Broken, match="damaged at byte 0") as error:
        Spool(tmp_path / "queue")
    assert error.value.code == "ZT905"
    assert file.path.read_bytes() == content
    assert observe_spool(tmp_path / "queue").damaged == (file.path.name,)
    assert not observe_spool(tmp_path / "queue").ok


def test_damage_that_comes_while_it_is_open_is_found_when_it_is_read(tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards") as spool:
        put(spool, 1, 1)
        (file,) = list_segments(tmp_path / "queue")
        content = bytearray(file.path.read_bytes())
        content[-1] ^= 1
        file.path.write_bytes(content)
        with pytest.raises(Broken, match="cannot be read"):
            names(spool)


def several_segments(folder: Path) -> list[Path]:
    for first in (1, 3, 5):
        with Spool(folder, "cards") as spool:
            put(spool, first, first + 1)
    return [file.path for file in list_segments(folder)]


def test_a_missing_segment_is_a_loss_unless_it_was_drained(tmp_path: Path) -> None:
    first, second, third = several_segments(tmp_path / "queue")
    kept = second.read_bytes()
    second.unlink()
    with pytest.raises(Broken, match="entries 3 to 4 are missing"):
        Spool(tmp_path / "queue")
    second.write_bytes(kept)
    torn = third.read_bytes()
    second.write_bytes(kept[:-1])
    with pytest.raises(Broken, match="damaged"):
        Spool(tmp_path / "queue")
    assert third.read_bytes() == torn
    second.unlink()
    note_drained(tmp_path / "queue", 4, durably=True)
    with Spool(tmp_path / "queue") as spool:
        assert names(spool) == wanted(5, 6)
        assert not first.exists()


def test_sequences_never_come_again_when_everything_was_drained(tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards") as spool:
        put(spool, 1, 4)
        spool.release(4)
    with Spool(tmp_path / "queue") as spool:
        assert (spool.waiting, list_segments(spool.folder)) == (0, [])
        assert spool.put("c-5", b"x") == 5
    with Spool(tmp_path / "queue") as spool:
        assert names(spool) == ["c-5"]


@pytest.mark.parametrize("spoiled", [b"", b"0" * 20, bytes(30), b"00000000000000000003 00000000\n", b"x" * 30])
def test_a_spoiled_note_of_the_drain_only_makes_it_drain_again(tmp_path: Path, spoiled: bytes) -> None:
    with Spool(tmp_path / "queue", "cards") as spool:
        put(spool, 1, 4)
        spool.release(3)
    (tmp_path / "queue" / "drained").write_bytes(spoiled)
    assert read_drained(tmp_path / "queue") == 0
    with Spool(tmp_path / "queue") as spool:
        assert names(spool) == wanted(1, 4)


def test_a_second_process_is_refused_and_told_who_has_the_folder(tmp_path: Path) -> None:
    program = "import sys; from zerotail import Spool; Spool(sys.argv[1], 'cards')"
    with Spool(tmp_path / "queue", "cards") as spool:
        second = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "queue")], capture_output=True, text=True, check=False
        )
        assert f"in use by another process ({os.getpid()})" in second.stderr
        assert "ZT901" not in second.stdout
        with pytest.raises(Refused) as refused:
            Spool(tmp_path / "queue")
        assert refused.value.code == "ZT901"
        assert observe_spool(tmp_path / "queue").used_by == os.getpid()
        put(spool, 1, 1)
    assert observe_spool(tmp_path / "queue").used_by is None
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "queue")], check=False).returncode == 0


def test_looking_never_keeps_a_process_from_starting(tmp_path: Path) -> None:
    Spool(tmp_path / "queue", "cards").close()
    stop = Event()

    def look() -> None:
        while not stop.is_set():
            observe_spool(tmp_path / "queue")

    looking = Thread(target=look)
    looking.start()
    try:
        for _ in range(50):
            Spool(tmp_path / "queue").close()
    finally:
        stop.set()
        looking.join()


def test_a_forked_child_leaves_the_spool_to_its_parent(tmp_path: Path) -> None:
    program = """
import os, sys, warnings
from zerotail import Spool
from zerotail.errors import Refused
spool = Spool(sys.argv[1], "cards")
spool.put("c-1", b"x")
child = os.fork()
if child == 0:
    try:
        spool.put("c-2", b"x")
    except Refused as refused:
        spool.close()
        os._exit(0 if "forked" in refused.message else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
spool.put("c-2", b"x")
child = os.fork()
if child == 0:
    os.read(0, 1)
    os._exit(0)
os._exit(0)
"""
    # The last child outlives its parent, and does not keep the folder.
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "queue")], stdin=subprocess.PIPE)
    assert process.wait(30) == 0
    with Spool(tmp_path / "queue") as spool:
        assert names(spool) == wanted(1, 2)
    assert process.stdin is not None
    process.stdin.close()


def refused(code: str, make: Callable[[], object]) -> ZerotailError:
    with pytest.raises(ZerotailError) as error:
        make()
    assert error.value.code == code
    return error.value


def test_a_folder_belongs_to_one_producer_and_holds_nothing_else(tmp_path: Path) -> None:
    Spool(tmp_path / "queue", "cards").close()
    refused("ZT903", lambda: Spool(tmp_path / "queue", "wires"))
    refused("ZT902", lambda: Spool(tmp_path / "nowhere"))
    refused("ZT902", lambda: observe_spool(tmp_path / "nowhere"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("hello")
    assert "letter.txt" in refused("ZT902", lambda: Spool(tmp_path / "other", "cards")).message
    (tmp_path / "queue" / "spool.json").write_text('{"format": 2, "producer": "cards"}')
    refused("ZT902", lambda: Spool(tmp_path / "queue", "cards"))
    (tmp_path / "queue" / "spool.json").write_text("no json")
    refused("ZT902", lambda: observe_spool(tmp_path / "queue"))
    refused("ZT909", lambda: Spool(tmp_path / "small", "cards", limit_bytes=1))
    refused("ZT909", lambda: Spool(tmp_path / "small", "cards", when_full="drop"))  # type: ignore[arg-type]


def test_a_closed_spool_takes_nothing_and_may_be_closed_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "queue", "cards")
    receipt = spool.put_soon("c-1", b"x")
    spool.close()
    spool.close()
    assert receipt.wait() == 1, "what was on its way is stored"
    refused("ZT910", lambda: spool.put("c-2", b"x"))
