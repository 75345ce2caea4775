"""The normal day on a Spark cluster: executors and workers are killed, tasks run twice, and nobody outside notices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running import (
    Running,
    is_alive,
    kill_points,
    reconcile,
    running_system,
    trickle,
    wait_for_progress,
)
from support.spark_cluster import WORKERS, executor_of, kill_executor, on_cluster, spark_cluster
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.nightly

POINTS = ("before-insert", "committed")
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "200ms",
    "spark.speculation.task.duration.threshold": "2s",
    # The slower one of two is not killed before it has done what it was at.
    "spark.python.task.killTimeout": "120s",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Layout]:
    """Two sites of our own, with a Spark cluster of two workers in east."""
    with spark_cluster() as layout:
        yield layout


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where points are armed at which a process of the system dies or rests."""
    folder = tmp_path / "points"
    folder.mkdir()
    for name, value in kill_points(folder).items():
        monkeypatch.setenv(name, value)
    return folder


def dies_at(armed: Path) -> dict[str, str]:
    """Let tasks know where points are armed."""
    return {"spark.executorEnv.ZT_KILL_POINTS": str(armed)}


def replace_executor(system: Running, worker: str) -> None:
    """Kill -9; the worker starts another one."""
    pid = kill_executor(system.lab, worker)
    system.wait(f"{worker} has another executor", lambda: executor_of(system.lab, worker) not in (None, pid))


def segments_of(system: Running) -> dict[int, int]:
    """How far each partition's journal has come."""
    return dict(system.sql("select partition, segment from zerotail.head where stage = %s", f"settle-{system.name}"))


def wait_until_each_partition_moves(system: Running) -> None:
    """Return when every partition has stored the batch it was at and the one behind it."""
    before = segments_of(system)
    assert len(before) == system.partitions
    system.wait(
        "every partition goes on",
        lambda: all(segment >= before[partition] + 2 for partition, segment in segments_of(system).items()),
    )


def require_unbroken(system: Running, process_id: int) -> None:
    """The application is the one that was started, and no query of it had to begin again."""
    assert is_alive(process_id)
    log = system.log.read_text()
    assert log.count("running stage") == 1, log
    assert "waiting stage" not in log, log
    assert "ending:" not in log, log


def finish(system: Running, process_id: int) -> None:
    """Everything has arrived once, in order, and from the application that was started."""
    system.wait_until_all_arrived()
    system.require_exactly_once()
    require_unbroken(system, process_id)
    reconcile(system)


def test_killed_executors_and_workers_lose_double_and_reorder_nothing(
    cluster: Layout, tmp_path: Path, armed: Path
) -> None:
    with running_system(
        cluster,
        tmp_path,
        "cluster",
        partitions=2,
        spark=on_cluster(cluster, **dies_at(armed)),
    ) as system:
        process = system.start("all")
        system.wait_for_line("running stage")
        with trickle(system, rows=20, every_seconds=0.2):
            wait_for_progress(system)
            assert all(executor_of(cluster, worker) for worker in WORKERS), "one of the workers is idle"
            replace_executor(system, WORKERS[0])
            wait_until_each_partition_moves(system)
            assert kill_target(cluster, WORKERS[0]).bit
            wait_until_each_partition_moves(system)
            assert start_target(cluster, WORKERS[0]).bit
            system.wait("it is at work again", lambda: executor_of(cluster, WORKERS[0]) is not None)
            assert kill_target(cluster, WORKERS[1]).bit
            wait_until_each_partition_moves(system)
            assert start_target(cluster, WORKERS[1]).bit
            wait_until_each_partition_moves(system)
        finish(system, process.pid)


def test_a_task_that_dies_around_its_commit_is_tried_again_and_finds_what_it_stored(
    cluster: Layout, tmp_path: Path, armed: Path
) -> None:
    with running_system(
        cluster,
        tmp_path,
        "again",
        partitions=2,
        spark=on_cluster(cluster, **dies_at(armed)),
    ) as system:
        process = system.start("all")
        system.wait_for_line("running stage")
        with trickle(system, rows=20, every_seconds=0.2):
            wait_for_progress(system)
            for point in POINTS:
                (armed / point).touch()
                system.wait(f"a task died at {point}", lambda: not (armed / point).exists())  # noqa: B023
                wait_until_each_partition_moves(system)
        assert len(list(armed.glob("*.done"))) == len(POINTS)
        finish(system, process.pid)


def test_of_two_tasks_with_the_same_batch_one_stores_it_and_both_may_say_so(
    cluster: Layout, tmp_path: Path, armed: Path
) -> None:
    spark = on_cluster(cluster, **dies_at(armed), **SPECULATION)
    with running_system(cluster, tmp_path, "speculation", partitions=2, spark=spark) as system:
        process = system.start("all")
        system.wait_for_line("running stage")
        with trickle(system, rows=20, every_seconds=0.2):
            wait_for_progress(system)
            for point in ("committed", "before-insert"):
                rests = run_twice(system, armed, point)
                rests.unlink()
                wait_until_each_partition_moves(system)
        finish(system, process.pid)


def run_twice(system: Running, armed: Path, point: str) -> Path:
    """Let a task rest at a point until another one has brought its batch to an end: what the resting one left."""
    (armed / f"{point}.rest").touch()
    system.wait(f"a task rests at {point}", lambda: bool(list(armed.glob("*.rest.*.done"))))
    (rests,) = armed.glob("*.rest.*.done")
    # A partition is at its next batch only when every task of this one has answered, and this one has not.
    wait_until_each_partition_moves(system)
    assert is_alive(int(rests.name.split(".")[-2])), "the task that was slow is still at it"
    return rests
