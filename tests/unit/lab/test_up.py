"""What `up` and `down` do to a folder, without starting a server."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Misused, Refused
from zerotail.lab import up
from zerotail.lab.example import write_example
from zerotail.lab.layout import LabSettings, plan_layout, ports_needed, write_layout
from zerotail.lab.process import Command, kill, processes_of, start
from zerotail.lab.up import bring_up, take_down

pytestmark = pytest.mark.fast

WAIT_FOR_EVER = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture(autouse=True)
def _own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry of ports of the test's own; whatever the test started is ended, also when it failed."""
    (tmp_path / "registry").mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "registry"))
    yield
    folder = tmp_path / "lab"
    kill(folder, {process.part for process in processes_of(folder)}, Deadline.after(10))


def other_peoples_folder(tmp_path: Path) -> Path:
    """A folder that holds what a lab would hold by name, and is none."""
    folder = tmp_path / "project"
    for name in ("east", "link"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text("mine")
    (folder / ".lock").write_text("mine")
    return folder


def test_down_removes_nothing_where_no_lab_is(tmp_path: Path) -> None:
    folder = other_peoples_folder(tmp_path)
    assert take_down(folder) == 0
    assert [path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()] == ["mine"] * 3


def test_a_refused_up_leaves_a_folder_as_it_was(tmp_path: Path) -> None:
    folder = other_peoples_folder(tmp_path)
    with pytest.raises(Refused, match="holds other files"):
        bring_up(LabSettings(folder))
    assert [path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()] == ["mine"] * 3


def test_an_up_that_lacks_something_leaves_neither_folder_nor_promised_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Refused, match=r"Java 17, and there is no java in .*, where JAVA_HOME points"):
        bring_up(LabSettings(tmp_path / "lab"))
    assert not (tmp_path / "lab").exists()
    registry = next((tmp_path / "registry").glob("zerotail-*/ports.json"))
    assert json.loads(registry.read_text()) == {}


def test_down_removes_the_example_with_what_python_made_of_it(tmp_path: Path) -> None:
    settings = LabSettings(tmp_path / "lab")
    settings.folder.mkdir()
    layout = plan_layout(settings, list(range(20000, 20000 + ports_needed(settings))))
    write_layout(layout)
    write_example(layout, settings)
    for folder in (settings.folder, settings.folder / "east"):
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "flows.pyc").touch()
    take_down(settings.folder)
    assert not settings.folder.exists()


def test_a_wrong_example_or_number_of_partitions_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for settings in (LabSettings(tmp_path / "lab", example="shop"), LabSettings(tmp_path / "lab", partitions=0)):
        with pytest.raises(Misused):
            bring_up(settings)
    assert not (tmp_path / "lab").exists()


def test_down_ends_what_runs_in_a_folder_that_was_removed_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    start(folder, Command("east.thing", WAIT_FOR_EVER, tmp_path))
    wait_until("it runs", lambda: processes_of(folder), Deadline.after(10))
    assert take_down(folder) == 1
    assert processes_of(folder) == []


def test_up_is_refused_while_processes_of_a_removed_folder_run(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    start(folder, Command("east.thing", WAIT_FOR_EVER, tmp_path))
    wait_until("it runs", lambda: processes_of(folder), Deadline.after(10))
    with pytest.raises(Refused, match="with 1 processes running"):
        bring_up(LabSettings(folder))
    assert take_down(folder) == 1


def test_one_command_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    with (
        up._only_one_command(tmp_path),
        pytest.raises(Refused, match="another command brings the lab") as refused,
        up._only_one_command(tmp_path),
    ):
        pass
    assert refused.value.code == "ZT211"
    with up._only_one_command(tmp_path):
        pass
    assert os.listdir(tmp_path) == ["registry"]
