"""A takeover runs the operator's own commands; what becomes of it when they fail or hang. In this order."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.arena import Arena
from support.command import PROGRAM
from support.running import is_alive
from support.sites import Sites, two_sites
from zerotail.core.identity import SiteName, epoch_of
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.fault import kill_target, start_target
from zerotail.operate import adapters
from zerotail.operate.command import Ended, run_command

pytestmark = [pytest.mark.servers, pytest.mark.chapters]

HANGING_SECONDS = 10.0
"""What a fence that hangs gets instead of its minutes; long enough to say that it was called."""
SCRIPT = """
import os, pathlib, signal, subprocess, sys
act, site, other, *command = sys.argv[1:]
folder = pathlib.Path(__file__).parent
with (folder / "calls").open("a") as calls:
    calls.write(f"{act} {site}, not {other}\\n")
mode = (folder / act).read_text()
if mode == "fails":
    sys.exit("the switch does not answer\\nmore about it")
if mode == "hangs":
    (folder / "hanging").write_text(str(os.getpid()))
    signal.pause()
sys.exit(subprocess.call(command))
"""


@dataclass(frozen=True)
class Own:
    """Two sites whose operator fences and promotes by programs of its own, which do as they are told."""

    sites: Sites
    folder: Path

    def tell(self, **modes: str) -> None:
        """How they behave from now on; what they did before is forgotten."""
        for act, mode in modes.items():
            (self.folder / act).write_text(mode)
        (self.folder / "calls").write_text("")

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def lose(self, site: str) -> None:
        assert kill_target(self.sites.lab, f"{site}.postgres").bit

    def bring_back(self, site: str, *, at: str) -> None:
        assert start_target(self.sites.lab, f"{site}.postgres").bit
        self.sites.act("rejoin", "--site", site, confirm=site, at=at)


@pytest.fixture(scope="module")
def own(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "script.py").write_text(SCRIPT)
    script = [sys.executable, str(folder / "script.py")]
    layout = arena.renewed()
    promote = [*PROGRAM, "lab", "promote", "{site}", "--dir", layout.folder]
    commands = {
        "fence": [*script, "fence", "{site}", "{other}", "true"],
        "promote": [*script, "promote", "{site}", "{other}", *promote],
    }
    with two_sites(layout, folder, **commands) as sites:
        yield Own(sites, folder)


def test_a_promotion_that_fails_leaves_a_takeover_that_can_be_resumed(own: Own) -> None:
    own.tell(fence="works", promote="fails")
    own.lose("east")
    plan = own.sites.call("takeover", "plan", "--to", "west", "--json").answer("takeover-plan")
    assert plan["steps"][0] == f"fence: shut east off by {sys.executable}"
    assert plan["steps"][1] == f"promote: make the database of west a primary, by {sys.executable}"
    assert own.calls == []
    stated = ("--plan", plan["id"], "--confirm", "west")
    failed = own.sites.call("takeover", "run", "--to", "west", *stated, "--json")
    assert failed.code == 5
    assert f"{sys.executable} exited with 1: the switch does not answer" in failed.answer("error")["message"]
    assert own.calls == ["fence east, not west", "promote west, not east"]
    assert own.sites.standing("west") == (epoch_of(1, 0), "live", "gated"), "it is a standby as before"
    assert own.sites.call("takeover", "status").code == 1


def test_the_resumed_takeover_runs_them_again_and_is_fenced(own: Own) -> None:
    own.tell(promote="works")
    resumed = own.sites.call("takeover", "resume", "--json")
    assert resumed.code == 0, resumed.out + resumed.err
    report = resumed.answer("takeover-report")
    assert own.calls == ["fence east, not west", "promote west, not east"]
    assert not report["unfenced"]
    assert not any("fenced" in remark for remark in report["remarks"])
    assert own.sites.standing("west") == (epoch_of(2, 1), "live", "exposed")
    assert own.sites.call("takeover", "status").code == 0


def test_a_fence_that_fails_is_remarked_on_and_the_takeover_goes_on(own: Own) -> None:
    own.bring_back("east", at="west")
    own.tell(fence="fails")
    own.lose("west")
    report = own.sites.act("takeover", "--to", "east", confirm="east", at="east")
    assert own.calls == ["fence west, not east", "promote east, not west"]
    reason = f"{sys.executable} exited with 1: the switch does not answer"
    assert (report["unfenced"], report["remarks"][0]) == (True, f"west could not be fenced: {reason}")
    assert own.sites.standing("east")[1] == "live"


def impatient(words: Sequence[str], site: SiteName, other: SiteName, deadline: Deadline) -> Ended:
    """As ever, but with little time for a fence."""
    return run_command(words, site, other, Deadline.after(HANGING_SECONDS) if "fence" in words else deadline)


def test_a_fence_that_hangs_is_ended_and_the_takeover_goes_on(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    own.bring_back("west", at="east")
    own.tell(fence="hangs")
    own.lose("east")
    monkeypatch.setattr(adapters, "run_command", impatient)
    report = own.sites.act("takeover", "--to", "west", confirm="west")
    assert own.calls == ["fence east, not west", "promote west, not east"]
    assert report["unfenced"]
    assert report["remarks"][0] == f"east could not be fenced: {sys.executable} did not end in time"
    assert own.sites.standing("west")[1] == "live"
    hanging = int((own.folder / "hanging").read_text())
    wait_until("the hanging command is gone", lambda: not is_alive(hanging), Deadline.after(10))
