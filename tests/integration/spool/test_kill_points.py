"""`kill -9` at every system call with which a spool is opened, filled and drained; and a disk that fails there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.tracing import FILE_CALLS, NOTHING, SpoolProcess
from zerotail import Spool

pytestmark = pytest.mark.fast


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SpoolProcess]:
    process = SpoolProcess(tmp_path / "queue")
    yield process
    process.end()


def stored(folder: Path) -> list[str]:
    """What a new start finds."""
    with Spool(folder, "cards-spooled") as spool:
        entries = spool.read(spool.drained, most_entries=10**6, most_bytes=10**9)
    assert all(entry.value == entry.id.encode() for entry in entries)
    return [entry.id for entry in entries]


@pytest.mark.parametrize(
    ("phase", "needed"),
    [
        ("open", {"mkdir", "flock", "openat", "write", "pwrite64", "fsync", "fdatasync", "rename", "ftruncate"}),
        ("put", {"openat", "write", "fdatasync", "fsync", "close"}),
    ],
)
def test_what_was_told_is_there_after_a_kill_at_every_system_call(
    service: SpoolProcess, phase: str, needed: set[str]
) -> None:
    met: dict[str, int] = {}
    begun: list[str] = []
    for call in FILE_CALLS:
        for injected, number in service.kill_at_every(call):
            if phase == "open":
                # Each time a folder that is made anew, so that every call of the first start is met.
                service.folder = service.folder.with_name(f"queue-{call}-{number}")
                begun = []
            ids = [f"{call}-{number}-{place}" for place in range(3)]
            begun += ids
            service.run(phase, ids, injected)
            found, told = stored(service.folder), service.told
            assert [identifier for identifier in found if identifier in told] == told, (injected, found, told)
            assert [identifier for identifier in begun if identifier in found] == found, "once, in the order of putting"
            met[call] = number - 1
        assert service.code == 0
        assert told[-3:] == ids
    assert needed <= {call for call, kills in met.items() if kills}, met


@pytest.mark.parametrize(
    ("fault", "certain"), [("write:error=ENOSPC", True), ("fdatasync:error=EIO", False), ("fsync:error=EIO", False)]
)
def test_a_disk_that_fails_is_told_and_what_was_acknowledged_stays(tmp_path: Path, fault: str, certain: bool) -> None:
    service = SpoolProcess(tmp_path / "queue")
    try:
        assert service.run("put", ["a", "b"], NOTHING) == 0
        # 1 is the exit code of an exception: `put` raised, and the service did not go on as if nothing were wrong.
        assert service.run("put", ["c", "d"], f"{fault}:when=1") == 1
        assert service.told == ["a", "b"]
        assert stored(tmp_path / "queue") == (["a", "b"] if certain else ["a", "b", "c"])
        assert service.run("put", ["c", "d"], NOTHING) == 0
        assert set(stored(tmp_path / "queue")) == {"a", "b", "c", "d"}
    finally:
        service.end()
