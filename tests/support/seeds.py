"""The seed of a run: drawn from the commit, so that each commit explores something else and the same one the same.

`ZT_TEST_SEED` states another one: so a failure is repeated, and so a night looks where nobody has looked. What is
random in a test comes from `seed_of("a name")`: no two tests share their dice, and each keeps its own when others are
added. Hypothesis draws from the same seed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path

from hypothesis import core

ROOT = Path(__file__).parents[2]
VARIABLE = "ZT_TEST_SEED"
_MOST = 2**31


@cache
def run_seed() -> int:
    """The seed of the whole run."""
    stated = os.environ.get(VARIABLE)
    if stated is not None:
        return int(stated)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    # A tree without history, such as an unpacked archive, has one seed for ever.
    return int(head.stdout[:8], 16) % _MOST if head.returncode == 0 else 1


def seed_of(name: str) -> int:
    """The seed of one thing that is random, below 2^31."""
    digest = hashlib.blake2b(f"{run_seed()}/{name}".encode(), digest_size=4).digest()
    return int.from_bytes(digest) % _MOST


def seed_property_tests() -> None:
    """Let Hypothesis draw from the run's seed, unless a seed was given on the command line."""
    if core.global_force_seed is None:
        core.global_force_seed = run_seed()  # type: ignore[assignment]


def told() -> str:
    """One line for the beginning of a run."""
    origin = VARIABLE if VARIABLE in os.environ else "from the commit"
    return f"seed: {run_seed()} ({origin}); the same again: {VARIABLE}={run_seed()} make test"


def repeating(nodeid: str) -> str:
    """The line that repeats one test of this run."""
    return f"{VARIABLE}={run_seed()} .venv/bin/python -m pytest '{nodeid}'"
