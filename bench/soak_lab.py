"""Up, a random fault, down, again and again: is anything left running, does a port clash?

    python bench/soak_lab.py --rounds 50 --seed 1

Each round brings up a lab of its own in a temporary folder, breaks it in one way that the seed chooses, sometimes
interrupts or kills the command that brings it up, takes it down and looks for processes that belong to it.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from zerotail.lab.fault import cut_link, destroy_site, kill_target, stop_target
from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.link import CutMode
from zerotail.lab.process import processes_of
from zerotail.lab.up import bring_up, take_down

FAULTS: dict[str, Callable[[Layout], object]] = {
    "kill east": lambda layout: kill_target(layout, "east"),
    "kill west.kafka": lambda layout: kill_target(layout, "west.kafka"),
    "kill link": lambda layout: kill_target(layout, "link"),
    "stop east": lambda layout: stop_target(layout, "east"),
    "stop west.postgres": lambda layout: stop_target(layout, "west.postgres"),
    "stop everything": lambda layout: [stop_target(layout, target) for target in ("east", "west", "link", "outside")],
    "destroy west": lambda layout: destroy_site(layout, "west"),
    "cut, connections hang": lambda layout: cut_link(layout, "both", CutMode.HANG),
    "cut, connections reset": lambda layout: cut_link(layout, "both", CutMode.RESET),
}
INTERRUPTIONS = {"interrupt `lab up`": signal.SIGINT, "kill -9 `lab up`": signal.SIGKILL}


def interrupt_up(folder: Path, number: signal.Signals, after_seconds: float) -> None:
    """Bring a lab up by the command and hit that command in the middle."""
    command = [sys.executable, "-m", "zerotail", "lab", "up", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as up:
        try:
            up.wait(after_seconds)
        except subprocess.TimeoutExpired:
            up.send_signal(number)
            up.wait(60)


def one_round(chance: random.Random) -> str:
    """One lab from up to down; answers what was done to it. `AssertionError` when something was left."""
    with tempfile.TemporaryDirectory(prefix="zerotail-soak-") as scratch:
        folder = Path(scratch) / "lab"
        what = chance.choice([*FAULTS, *INTERRUPTIONS])
        try:
            if what in INTERRUPTIONS:
                interrupt_up(folder, INTERRUPTIONS[what], chance.uniform(0.1, 7.0))
            else:
                FAULTS[what](bring_up(LabSettings(folder)))
        finally:
            take_down(folder)
        left = processes_of(folder)
        assert not left, f"after {what!r} this was left: {left}"
        assert not folder.exists(), f"after {what!r} the folder was left"
        return what


def main() -> None:
    """Run the rounds and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    began = time.monotonic()
    for number in range(1, arguments.rounds + 1):
        round_began = time.monotonic()
        what = one_round(chance)
        print(f"{number:>4}  {time.monotonic() - round_began:5.1f} s  {what}", flush=True)
    print(f"{arguments.rounds} rounds in {time.monotonic() - began:.0f} s: nothing left running, no port clash")


if __name__ == "__main__":
    main()
