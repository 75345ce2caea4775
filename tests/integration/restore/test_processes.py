"""A restore that is killed, and one that the operating system keeps short of memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.restoring import Disaster, cluster_of, disorder, make_disaster, write_log
from zerotail.bench.restore_case import Case, make_case, prepare_database
from zerotail.core.identity import TopicName
from zerotail.kafka.log import admin_client, remove_topic
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.nightly
PROGRAM = Path(__file__).parents[2] / "support" / "restore_process.py"
SMALL_STACKS = 256 * 1024
LIMIT_BYTES = 64_000_000


def run_process(asked: dict[str, Any], seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Small stacks and malloc: each thread's stack counts as data, and so does what Arrow's own pools reserve. Killed
    behind the time.
    """
    return subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(asked)],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (SMALL_STACKS, resource.RLIM_INFINITY)),
    )


def asked_of(disaster: Disaster, strategy: str, **more: Any) -> dict[str, Any]:
    place = disaster.place
    names = {"bootstrap": place.cluster.bootstrap, "dsn": place.dsn, "stage": place.stage, "topic": place.topic}
    return {**names, "strategy": strategy, **more}


@pytest.mark.parametrize("strategy", ["ordered-refill", "unbounded"])
def test_a_restore_killed_at_commits_and_run_again_ends_the_same(lab: Layout, strategy: str) -> None:
    disaster = make_disaster(lab, 41, segments=30, most=120)
    write_log(disaster.place, disorder(disaster.taken, 41))
    into = f"{disaster.place.topic}-{strategy}"
    for kill_at in (1, -1, 2):
        killed = run_process(asked_of(disaster, strategy, into=into, kill_at=kill_at))
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    finished = run_process(asked_of(disaster, strategy, into=into))
    assert finished.returncode == 0, finished.stderr
    assert disaster.content(into) == [*disaster.taken]
    again = run_process(asked_of(disaster, strategy, into=into))
    assert again.returncode == 0, again.stderr
    assert len(disaster.content(into)) == len(disaster.taken)


@pytest.mark.parametrize(("strategy", "seed"), [("ordered-refill", 1), ("unbounded", 2), ("bounded", 3)])
def test_a_restore_killed_at_any_time_and_run_again_ends_the_same(lab: Layout, strategy: str, seed: int) -> None:
    disaster = make_disaster(lab, 42 + seed, segments=60, most=200)
    write_log(disaster.place, disorder(disaster.taken, seed))
    into, chance, killed = f"{disaster.place.topic}-{strategy}", Random(seed), 0
    began = time.monotonic()
    whole = run_process(asked_of(disaster, strategy, into=f"{into}-whole", commits="small"))
    assert whole.returncode == 0, whole.stderr
    longest = time.monotonic() - began
    for _ in range(8):
        try:
            done = run_process(asked_of(disaster, strategy, into=into, commits="small"), chance.uniform(0, longest))
        except subprocess.TimeoutExpired:
            killed += 1
        else:
            assert done.returncode == 0, done.stderr
    assert killed >= 2, "nothing was interrupted"
    finished = run_process(asked_of(disaster, strategy, into=into))
    assert finished.returncode == 0, finished.stderr
    assert disaster.content(into) == [*disaster.taken]


@pytest.fixture(scope="module")
def one_first(warm_lab: Layout) -> Iterator[dict[str, Any]]:
    """400,000 records whose producers come one after the other: half of them wait for the others."""
    case = Case(400_000, "one-first", 2)
    database = dsn(warm_lab.database("east"))
    prepare_database(database)
    make_case(case, database, cluster_of(warm_lab))
    yield {
        "bootstrap": cluster_of(warm_lab).bootstrap,
        "dsn": database,
        "stage": case.stage,
        "topic": case.topic,
        "memory_bytes": LIMIT_BYTES,
    }
    remove_topic(admin_client(cluster_of(warm_lab)), TopicName(case.topic))


def test_a_bounded_restore_keeps_to_its_memory_under_a_hard_limit_of_the_system(
    lab: Layout, one_first: dict[str, Any]
) -> None:
    done = run_process({**one_first, "strategy": "bounded", "data_bytes": LIMIT_BYTES})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] == 400_000
    unlimited = run_process({**one_first, "strategy": "unbounded", "data_bytes": LIMIT_BYTES})
    assert unlimited.returncode != 0, "the limit is too wide to show anything"
