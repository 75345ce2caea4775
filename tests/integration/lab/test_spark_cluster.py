"""A real Spark cluster in the lab: it starts on demand, runs jobs, survives the loss of a worker, leaves nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from support import cluster_job
from support.command import call
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout, find_layout
from zerotail.lab.process import processes_of
from zerotail.lab.spark import secret_of
from zerotail.lab.status import observe_lab
from zerotail.lab.up import take_down

pytestmark = pytest.mark.nightly
PATIENCE_SECONDS = 120.0
PARTS = ["east.spark-master", "east.spark-worker-1", "east.spark-worker-2"]


@pytest.fixture
def cluster(lab: Layout) -> Iterator[Layout]:
    """The lab with its Spark cluster at work."""
    start_target(lab, "east.spark")
    yield lab
    kill_target(lab, "east.spark")


@contextmanager
def job_on(lab: Layout, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The job of `cluster_job`, which ends with the block at the latest."""
    command = [sys.executable, cluster_job.__file__, lab.spark_master, str(folder), str(secret_of(lab))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as job:
        try:
            yield job
        finally:
            job.kill()


def running(lab: Layout, part: str) -> list[int]:
    return [process.pid for process in processes_of(lab.path) if process.part == part]


def tasks_on(folder: Path, part: str) -> list[Path]:
    return list(folder.glob(f"at-{part}-*"))


def states(lab: Layout) -> list[str]:
    return [part.state for part in observe_lab(lab).parts if part.part in PARTS]


def test_a_cluster_starts_on_demand_and_is_killed_by_one_name(lab: Layout) -> None:
    assert states(lab) == ["on demand"] * 3
    started = start_target(lab, "east.spark")
    assert started.evidence == (f"{', '.join(PARTS)} ready",)
    assert states(lab) == ["running"] * 3
    assert not start_target(lab, "east").bit
    assert kill_target(lab, "east.spark").bit
    assert states(lab) == ["on demand"] * 3
    assert not start_target(lab, "east").bit, "a site starts without what is there on demand"


def test_a_job_finishes_although_a_worker_is_killed_in_the_middle_of_it(cluster: Layout, tmp_path: Path) -> None:
    deadline = Deadline.after(PATIENCE_SECONDS)
    with job_on(cluster, tmp_path) as job:
        for worker in PARTS[1:]:
            wait_until(f"a task runs on {worker}", partial(tasks_on, tmp_path, worker), deadline)
        before = running(cluster, "east.spark-worker-1")
        assert len(before) > 1, "the executor and its Python are processes of the worker"
        assert kill_target(cluster, "east.spark-worker-1").bit
        assert running(cluster, "east.spark-worker-1") == []
        (tmp_path / "go").touch()
        printed, _ = job.communicate(timeout=deadline.seconds_left)
    assert job.returncode == 0
    rows = json.loads(printed)
    assert sorted(json.loads(record)["amount"] for _, record in rows) == list(range(cluster_job.TASKS))
    assert {part for part, _ in rows} == {"east.spark-worker-2"}


def test_whoever_does_not_know_the_secret_is_not_let_in(cluster: Layout, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.write_text("0" * 64)
    command = [sys.executable, cluster_job.__file__, cluster.spark_master, str(tmp_path), str(stranger)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert said.returncode != 0
    assert tasks_on(tmp_path, "*") == []


def test_a_killed_worker_and_a_killed_master_come_back(cluster: Layout) -> None:
    for part in ("east.spark-worker-2", "east.spark-master"):
        assert kill_target(cluster, part).bit
        assert not kill_target(cluster, part).bit
        assert start_target(cluster, part).evidence == (f"{part} ready",)
    assert states(cluster) == ["running"] * 3


def test_up_brings_the_cluster_along_and_down_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    try:
        said = call("lab", "up", "--dir", str(folder), "--spark-cluster", "--json")
        assert said.code == 0, said.err
        layout = said.answer("lab-up")["layout"]
        assert layout["spark_cluster"]
        observed = call("lab", "status", "--dir", str(folder), "--json")
        found = {part["part"]: part["state"] for part in observed.answer("lab-status")["parts"]}
        assert [found[part] for part in PARTS] == ["running"] * 3
        master = f"spark://127.0.0.1:{layout['spark'][0]['port']}"
        assert f"master: {master}" in (folder / "east" / "zerotail.yaml").read_text()
        assert master not in (folder / "west" / "zerotail.yaml").read_text()
        # With an executor and its Python at work: they are the lab's processes, too.
        lab = find_layout(folder)
        assert lab is not None
        with job_on(lab, tmp_path):
            wait_until("a task runs", partial(tasks_on, tmp_path, "*"), Deadline.after(PATIENCE_SECONDS))
            assert call("lab", "down", "--dir", str(folder)).code == 0
        assert processes_of(folder) == []
        assert not folder.exists()
    finally:
        take_down(folder)
