"""What runs without the checks really runs without them; and what the page says of the cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import zerotail.bench.checks
from zerotail.bench.checks_page import goals_of, section_of
from zerotail.bench.result import ChecksCost, ChecksRound
from zerotail.bench.stored import Stored

pytestmark = pytest.mark.fast

UNCHECKED = Path(zerotail.bench.checks.__file__).with_name("unchecked")
ANOTHER_VALUE = """
from zerotail.core.installation import Installation
from zerotail.core.record import Header, decode_column, digest_of, encode
from zerotail.flow.apply import Order, SpoiledError, _require_own_values
import pyarrow

try:
    _require_own_values(Order([1], [1], [digest_of(b"sent")], [b"arrived"]))
except SpoiledError:
    print("another value")
header = encode(Header(256, 1, 1, digest_of(b"sent"), 7))
for column in (pyarrow.array([header]), pyarrow.chunked_array([[header], [header]])):
    read = decode_column(column, Installation(b"east and west 01", False))
    print(read.strangers, read.epochs.tolist())
"""


def test_what_runs_without_the_checks_compares_nothing_and_says_so() -> None:
    def run(path: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", ANOTHER_VALUE],
            env={"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, done.stderr

    assert run("") == ("another value\n1 [0]\n2 [0, 0]\n", "")
    assert run(str(UNCHECKED)) == ("0 [256]\n0 [256, 256]\n", "without the checks\n")


def test_the_page_shows_each_round_and_whether_the_goal_is_reached() -> None:
    rounds = (ChecksRound(30_000.0, 30_500.0, 102.0, 100.0), ChecksRound(29_000.0, 28_000.0, 104.0, 100.0))
    cost = ChecksCost(1_000, 3.2, -0.9, rounds, {})
    (goal,) = goals_of(cost)
    assert not goal.reached
    text = section_of(Stored((), cost))
    assert "| 2 | 29,000 | 28,000 | 104.0 | 100.0 | 1.040 |" in text
    assert "**not reached**" in text
    assert "0.9 % more of them with the checks" in text
