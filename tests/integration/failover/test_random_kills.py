"""A takeover that is killed at random system calls, again and again, is finished by `resume`, and nothing is doubled.

Each kill falls on a call that changes something outside the process, or waits for an answer: what lies between two of
them changes nothing anywhere. `ZT_TEST_CALLS` says how many kills it takes.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess

import pytest

from support.command import PROGRAM
from support.sites import Sites
from support.tracing import CHANGING_CALLS, require_strace
from zerotail.lab.fault import kill_target
from zerotail.lab.site import other_site

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(2400)]

KILLS = int(os.environ.get("ZT_TEST_CALLS", "60"))
CALLS = (*CHANGING_CALLS, "recvfrom")
MOST_CALLS = 200
"""strace counts the calls of each thread by itself; beyond this most kills never come, and the takeover just ends."""


def test_a_takeover_that_is_killed_at_random_calls_is_finished_and_nothing_is_doubled(sites: Sites) -> None:
    chance = random.Random(1)
    active, kills = "east", 0
    while kills < KILLS:
        lost, active = active, other_site(active)
        assert kill_target(sites.lab, lost).bit
        sites.kill(lost)
        while not take_over(sites, active, chance):
            kills += 1
        assert sites.standing(active)[1:] == ("live", "exposed")
        assert sites.call("takeover", "status", at=active).code == 0
        sites.insert(active, 20)
        sites.wait_until_all_arrived(active)
        bring_back(sites, lost, active)


def take_over(sites: Sites, to: str, chance: random.Random) -> bool:
    """Begin a takeover, or resume the one that was killed, with a kill at a random call; whether it came to its end."""
    call = chance.choice(CALLS)
    number = int(math.exp(chance.uniform(0, math.log(MOST_CALLS))))
    # Not with --seccomp-bpf: it is faster, and strace 6.1 injects nothing then.
    command = [require_strace(), "-f", "-q", "-o", os.devnull, "-e", f"trace={call}"]
    command += ["-e", f"inject={call}:signal=KILL:when={number}", *PROGRAM, "takeover", *words(sites, to), "--json"]
    environment = {**os.environ, **sites.environment(to)}
    ended = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
    assert ended.returncode in {0, -signal.SIGKILL}, f"{call} {number}: {ended.stdout}{ended.stderr}"
    return ended.returncode == 0


def words(sites: Sites, to: str) -> list[str]:
    if sites.call("takeover", "status", at=to).code == 1:
        return ["resume"]
    plan = sites.call("takeover", "plan", "--to", to, "--json", at=to).answer("takeover-plan")["id"]
    return ["run", "--to", to, "--plan", plan, "--confirm", to]


def bring_back(sites: Sites, lost: str, active: str) -> None:
    assert sites.call("lab", "start", lost, "--dir", sites.lab.folder).code == 0
    sites.act("rejoin", "--site", lost, confirm=lost, at=active)
    sites.start(lost)
    assert sites.standing(active)[1:] == ("live", "gated")
