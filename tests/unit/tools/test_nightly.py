"""A night of tests: what has ended is not begun again, and the page says what came of each part, with its seed."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from zerotail.deadline import Deadline, wait_until

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tools" / "nightly.py"


@pytest.fixture(scope="module")
def nightly() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nightly", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nightly"] = module
    spec.loader.exec_module(module)
    return module


def test_each_part_is_told_with_its_result_its_seed_and_the_line_that_repeats_it(
    nightly: ModuleType, tmp_path: Path
) -> None:
    parts = [
        nightly.Part("good", ("sh", "-c", "echo seed $ZT_TEST_SEED is {seed}")),
        nightly.Part("bad", ("sh", "-c", "echo it broke; exit 3")),
        nightly.Part("endless", ("sleep", "60"), hours=0.2 / 3600),
    ]
    night = nightly.open_night(tmp_path, "abc", fresh=False)
    nightly.run_parts(night, tmp_path, parts, seconds=60)
    assert not nightly.write_page(night, tmp_path, parts)
    page = (tmp_path / nightly.PAGE).read_text()
    seeds = {part.name: night.seed_of(part.name) for part in parts}
    assert len(set(seeds.values())) == 3
    assert f"| good | passed | 0 | {seeds['good']} | seed {seeds['good']} is {seeds['good']} |" in page
    assert f"| bad | failed | 0 | {seeds['bad']} | it broke |" in page
    assert "| endless | too long |" in page
    assert f"ZT_TEST_SEED={seeds['bad']} sh -c 'echo it broke; exit 3'" in page
    assert f"ZT_TEST_SEED={seeds['good']}" not in page


def test_a_night_goes_on_where_it_was_broken_off_and_another_commit_begins_a_new_one(
    nightly: ModuleType, tmp_path: Path
) -> None:
    parts = [nightly.Part(name, ("sh", "-c", f"echo x >> {tmp_path}/{name}")) for name in ("one", "two")]
    night = nightly.open_night(tmp_path, "abc", fresh=False)
    nightly.run_parts(night, tmp_path, parts[:1], seconds=60)
    again = nightly.open_night(tmp_path, "abc", fresh=False)
    assert again == night
    nightly.run_parts(again, tmp_path, parts, seconds=60)
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["x\n", "x\n"]
    assert nightly.open_night(tmp_path, "abc", fresh=True).ended == {}
    other = nightly.open_night(tmp_path, "def", fresh=False)
    assert other.ended == {}
    assert other.seed != night.seed


def test_what_is_left_when_the_time_is_over_is_named_and_is_no_success(nightly: ModuleType, tmp_path: Path) -> None:
    parts = [nightly.Part("first", ("sleep", "0.2")), nightly.Part("second", ("true",))]
    night = nightly.open_night(tmp_path, "abc", fresh=False)
    nightly.run_parts(night, tmp_path, parts, seconds=0.1)
    assert list(night.ended) == ["first"]
    assert not nightly.write_page(night, tmp_path, parts)
    assert "| second | not begun |" in (tmp_path / nightly.PAGE).read_text()


def test_who_calls_again_when_the_time_was_over_has_as_much_again(nightly: ModuleType, tmp_path: Path) -> None:
    parts = [nightly.Part("first", ("sleep", "0.2")), nightly.Part("second", ("true",))]
    night = nightly.open_night(tmp_path, "abc", fresh=False)
    nightly.run_parts(night, tmp_path, parts, seconds=0.1)
    nightly.run_parts(night, tmp_path, parts, seconds=0.1)
    assert list(night.ended) == ["first", "second"]


def test_no_night_begins_when_the_tests_cannot_be_listed(
    nightly: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = nightly\n")
    (tmp_path / "test_broken.py").write_text("import nothing_of_that_name\n")
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="nothing_of_that_name"):
        nightly.parts_of_the_suite()


def test_modules_that_no_process_has_run_are_named(
    nightly: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightly, "COVERAGE", nightly.COVERAGE.replace("zerotail", "zerotail.core", 1))
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import zerotail.core.admission'])"
    parts = [nightly.Part("imports", (sys.executable, "-c", program))]
    night = nightly.open_night(tmp_path, "abc", fresh=False)
    nightly.run_parts(night, tmp_path, parts, seconds=60)
    assert not nightly.write_page(night, tmp_path, parts), "a module that nobody runs is no success"
    page = (tmp_path / nightly.PAGE).read_text()
    assert "src/zerotail/core/takeover.py" in page
    assert "src/zerotail/core/admission.py" not in page
    nightly.write_page(night, tmp_path, [*parts, nightly.Part("later", ("true",))])
    page = (tmp_path / nightly.PAGE).read_text()
    assert "were run so far." in page
    assert "never run" not in page, "what is left may run it"


PATIENT = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("nightly", {program!r})
nightly = sys.modules["nightly"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(nightly)
nightly.parts_of_the_suite = list
nightly.other_parts = lambda: [nightly.Part("patience", ("sh", "-c", "echo begun; sleep 100"))]
sys.exit(nightly.main(["--folder", {folder!r}]))
"""


def test_ctrl_c_ends_the_part_that_runs_and_leaves_the_page(tmp_path: Path) -> None:
    program = PATIENT.format(program=str(PROGRAM), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        log = tmp_path / "patience.log"
        wait_until("the part runs", lambda: log.exists() and log.stat().st_size > 0, Deadline.after(60))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode != 0
    assert "| patience | not begun |" in (tmp_path / "summary.md").read_text()


def test_an_unknown_part_is_refused_by_name(
    nightly: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "parts_of_the_suite", list)
    with pytest.raises(SystemExit) as ended:
        nightly.main(["--only", "nothing"])
    assert ended.value.code == 2
    assert "there is no part nothing; --list names them" in capsys.readouterr().err
