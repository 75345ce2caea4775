"""Every process of a site is killed, at random and at every named point: nothing is lost, doubled or out of order."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from support.arena import Arena
from support.backend_log import JOURNAL, LANE, logging_backends, read_deaths, require_died_in_commit
from support.running import (
    Running,
    find_process,
    find_worker,
    is_alive,
    kill_points,
    reconcile,
    running_system,
    trickle,
)
from support.seeds import seed_of
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout

SEED = seed_of("kills")
ROUNDS = int(os.environ.get("ZT_TEST_KILLS", "1"))
"""How often all of it at night, 32 kills; 10 are 320. Every day each named point kills once."""
TARGETS = ["emitter"] * 7 + ["worker"] * 5 + ["driver"] * 2 + ["jvm"] * 1 + ["broker"] * 1
POINTS = (
    "before-insert",
    "in-commit-of-Commit",
    "committed",
    "gated",
    "sent",
    "answered",
    "in-commit-of-RecordAcknowledged",
    "recorded",
)
WHO_DIES_IN_COMMIT = {
    "Commit": ("zerotail.spark.daemon", JOURNAL),
    "RecordAcknowledged": ("zerotail run emitter", LANE),
}
"""By what is carried out: which process that is, and what it has written."""


@pytest.fixture
def own_lab(arena: Arena) -> Layout:
    """A new lab: `reconcile` at the end looks at everything in it."""
    return arena.renewed()


def kill(system: Running, root: int, target: str) -> None:
    """Kill a part of the running system with SIGKILL; the broker is started again, the rest starts itself."""
    if target == "broker":
        assert kill_target(system.lab, "east.kafka").bit
        start_target(system.lab, "east.kafka")
        return
    words = {"emitter": "zerotail run emitter", "driver": "zerotail run flow", "jvm": "SparkSubmit"}

    killed: list[int] = []

    def kill_it() -> bool:
        """A worker may have gone by itself since it was found: then the next one."""
        pid = find_worker(root) if target == "worker" else find_process(root, words[target])
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        return bool(killed)

    system.wait(f"there is a {target} to kill", kill_it)
    (pid,) = killed
    system.wait(f"the {target} is gone", lambda: not is_alive(pid), 10)


@pytest.mark.nightly
def test_processes_killed_at_random_lose_double_and_reorder_nothing(own_lab: Layout, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    targets = TARGETS * ROUNDS
    chance.shuffle(targets)
    with running_system(own_lab, tmp_path, "random", partitions=2) as system:
        root = system.start("all").pid
        system.wait_for_line("running stage")
        with trickle(system):
            system.wait_for_progress()
            for target in targets:
                kill(system, root, target)
                if target in ("driver", "jvm", "broker") or chance.random() < 0.5:
                    system.wait_for_progress()
            system.wait_for_progress()
        system.wait_until_all_arrived()
        system.require_exactly_once()
        reconcile(system)


@pytest.mark.parametrize(
    "times", [pytest.param(1, marks=pytest.mark.servers), pytest.param(2 * ROUNDS, marks=pytest.mark.nightly)]
)
def test_processes_killed_at_every_named_point_lose_double_and_reorder_nothing(
    own_lab: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    armed = tmp_path / "points"
    armed.mkdir()
    for name, value in kill_points(armed).items():
        monkeypatch.setenv(name, value)
    with (
        logging_backends(own_lab, "east") as log,
        running_system(own_lab, tmp_path, "points", receiver="R1") as system,
    ):
        system.start("all")
        system.wait_for_line("running stage")
        with trickle(system):
            system.wait_for_progress()
            for point in POINTS * times:
                (armed / point).touch()
                system.wait(f"somebody died at {point}", lambda point=point: not (armed / point).exists())  # type: ignore[misc]
                system.wait_for_progress()
        system.wait_until_all_arrived()
        system.require_exactly_once()
        assert len(list(armed.glob("*.done"))) == len(POINTS) * times
        deaths = read_deaths(armed)
        assert sorted(death.effect for death in deaths) == sorted([*WHO_DIES_IN_COMMIT] * times)
        for death in deaths:
            process, wrote = WHO_DIES_IN_COMMIT[death.effect]
            assert process in death.command
            require_died_in_commit(death, log, wrote)
        reconcile(system)
