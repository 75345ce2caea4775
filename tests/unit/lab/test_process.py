"""Processes are found by what they are, and only they are hit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from zerotail.deadline import Deadline, wait_until
from zerotail.lab.process import Command, Process, kill, processes_of, send, start

pytestmark = pytest.mark.fast

WAIT_FOR_EVER = [sys.executable, "-c", "import signal; signal.pause()"]
WITH_A_CHILD = [
    sys.executable,
    "-c",
    "import os, signal\nif os.fork() == 0:\n    os.setsid()\nsignal.pause()",
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A lab's folder; whatever the test started in it is ended."""
    yield tmp_path
    parts = {process.part for process in processes_of(tmp_path)}
    kill(tmp_path, parts, Deadline.after(10))


def wait_for(folder: Path, count: int) -> list[Process]:
    found: list[Process] = []

    def enough() -> bool:
        found[:] = processes_of(folder)
        return len(found) == count

    wait_until(f"{count} processes run", enough, Deadline.after(10))
    return found


def test_a_server_is_found_by_a_process_that_did_not_start_it(folder: Path) -> None:
    start(folder, Command("east.thing", WAIT_FOR_EVER, folder))
    wait_for(folder, 1)
    program = (
        "import sys; from pathlib import Path; from zerotail.lab.process import processes_of; "
        "print([process.part for process in processes_of(Path(sys.argv[1]))])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['east.thing']"


def test_children_in_sessions_of_their_own_belong_to_the_part(folder: Path) -> None:
    start(folder, Command("east.thing", WITH_A_CHILD, folder))
    assert {process.part for process in wait_for(folder, 2)} == {"east.thing"}
    assert len(kill(folder, {"east.thing"}, Deadline.after(10))) == 2
    assert processes_of(folder) == []


def test_another_labs_processes_are_not_seen(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    start(folder, Command("east.thing", WAIT_FOR_EVER, folder))
    wait_for(folder, 1)
    assert processes_of(tmp_path_factory.mktemp("other")) == []
    assert processes_of(folder.parent) == []


def test_only_the_named_parts_are_killed(folder: Path) -> None:
    start(folder, Command("east.thing", WAIT_FOR_EVER, folder))
    start(folder, Command("west.thing", WAIT_FOR_EVER, folder))
    wait_for(folder, 2)
    kill(folder, {"east.thing"}, Deadline.after(10))
    assert [process.part for process in processes_of(folder)] == ["west.thing"]


def test_a_recycled_pid_is_never_hit(folder: Path) -> None:
    start(folder, Command("east.thing", WAIT_FOR_EVER, folder))
    process = wait_for(folder, 1)[0]
    earlier = replace(process, started=process.started - 1)
    assert not send(earlier, signal.SIGKILL)
    assert [found.pid for found in processes_of(folder)] == [process.pid]
    assert send(process, signal.SIGKILL)


def test_a_process_that_is_gone_cannot_be_hit(folder: Path) -> None:
    start(folder, Command("east.thing", WAIT_FOR_EVER, folder))
    process = wait_for(folder, 1)[0]
    kill(folder, {"east.thing"}, Deadline.after(10))
    assert not send(process, signal.SIGTERM)


def test_a_stopped_process_is_killed_too(folder: Path) -> None:
    start(folder, Command("east.thing", WAIT_FOR_EVER, folder))
    process = wait_for(folder, 1)[0]
    send(process, signal.SIGSTOP)
    wait_until("it is stopped", lambda: processes_of(folder)[0].state == "T", Deadline.after(10))
    kill(folder, {"east.thing"}, Deadline.after(10))
    assert processes_of(folder) == []


def test_a_server_has_a_group_of_its_own_and_writes_its_log(folder: Path) -> None:
    program = "import signal; print('hello', flush=True); signal.pause()"
    pid = start(folder, Command("east.thing", [sys.executable, "-c", program], folder))
    wait_until("it has written", lambda: (folder / "log").read_text() == "hello\n", Deadline.after(10))
    assert os.getpgid(pid) == pid
    assert os.getsid(pid) == pid


def test_a_stranger_with_an_unreadable_name_disturbs_nobody(folder: Path, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff) Z 1"
    shutil.copy(os.fsencode(shutil.which("sleep") or "sleep"), odd)
    start(folder, Command("east.thing", WAIT_FOR_EVER, folder))
    with subprocess.Popen([odd, b"60"]) as stranger:
        try:
            assert [process.part for process in wait_for(folder, 1)] == ["east.thing"]
        finally:
            stranger.kill()


def test_a_lab_is_found_in_a_folder_whose_name_is_no_text(folder: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/\xff"))
    odd.mkdir()
    start(odd, Command("east.thing", WAIT_FOR_EVER, odd))
    wait_until("it is found", lambda: processes_of(odd), Deadline.after(10))
    assert len(kill(odd, {"east.thing"}, Deadline.after(10))) == 1
