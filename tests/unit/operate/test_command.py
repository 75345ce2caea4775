"""Commands of the configuration: no shell, names put in, a reason when they fail."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.operate.command import Ended, run_command

pytestmark = pytest.mark.fast

EAST, WEST = SiteName("east"), SiteName("west")


def run(*words: str, seconds: float = 20) -> Ended:
    return run_command(words, EAST, WEST, Deadline.after(seconds))


def test_the_names_of_the_sites_are_put_in_and_nothing_else_is_read() -> None:
    program = "import sys; sys.exit(sys.argv[1:] != ['east', 'from west', '$HOME'])"
    assert run(sys.executable, "-c", program, "{site}", "from {other}", "$HOME") == Ended(True, "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((sys.executable, "-c", "import sys; sys.exit('no power')"), "exited with 1: no power"),
        ((sys.executable, "-c", "print('odd'); raise SystemExit(3)"), "exited with 3: odd"),
        ((sys.executable, "-c", "raise SystemExit(2)"), "exited with 2: it said nothing"),
        (("no-such-program-at-all",), "cannot be started: No such file or directory"),
    ],
)
def test_a_command_that_fails_says_why(words: tuple[str, ...], reason: str) -> None:
    ended = run(*words)
    assert not ended.ok
    assert ended.said == f"{words[0]} {reason}"


def test_a_server_that_it_leaves_behind_is_not_waited_for() -> None:
    pause = "import signal; signal.pause()"
    program = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {pause!r}]).pid, file=sys.stderr)"
    ended = run(sys.executable, "-c", f"{program}; sys.exit(1)")
    os.kill(int(ended.said.rsplit(maxsplit=1)[-1]), signal.SIGKILL)


def test_what_it_has_started_is_killed_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    start = f"child=subprocess.Popen(['sleep', '60']); open({str(child)!r}, 'w').write(str(child.pid)); child.wait()"
    assert not run(sys.executable, "-c", f"import subprocess; {start}", seconds=8).ok
    pid = int(child.read_text())
    gone = Deadline.after(20)
    wait_until("its child is gone", lambda: _is_dead(pid), gone)


def _is_dead(pid: int) -> bool:
    """Gone, or killed and nobody has asked for it yet."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return True


def test_a_command_that_takes_too_long_is_given_up() -> None:
    assert run(sys.executable, "-c", "import time; time.sleep(60)", seconds=0.3).said.endswith("did not end in time")
