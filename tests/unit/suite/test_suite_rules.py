"""The rules of the suite: no test outside the tiers, no chapter without its beginning, dice that fall the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.lanes import seconds_of, unit_of
from support.seeds import run_seed, seed_of

pytestmark = pytest.mark.fast

TESTS = Path(__file__).parents[2]
STORY = """
import pytest
pytestmark = [pytest.mark.fast, pytest.mark.chapters]

@pytest.fixture(scope="module")
def told():
    return []

def test_first(told):
    told.append(1)

def test_second(told):
    told.append(2)
    assert told == {second}

def test_third(told):
    assert told == [1, 2]
"""


def run(folder: Path, test: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest over one test file, with the suite's own conftest."""
    shutil.copyfile(TESTS / "conftest.py", folder / "conftest.py")
    (folder / "test_planted.py").write_text(test)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent / 'src'}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


OUTSIDE = """
import pytest

def test_plain(): pass

@pytest.mark.fast
@pytest.mark.nightly
def test_in_two(): pass

class TestKind:
    def test_inner(self): pass

@pytest.mark.parametrize("one", [pytest.param(1, marks=pytest.mark.fast), 2])
def test_many(one): pass

@pytest.mark.fast
def test_inside(): pytest.fail("nothing is run")
"""


@pytest.mark.parametrize("words", [("-m", "fast"), ("-m", "fast or servers", "-n", "2")], ids=" ".join)
def test_a_test_that_is_not_in_exactly_one_tier_ends_the_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = run(tmp_path, OUTSIDE, *words)
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    said = ended.stdout + ended.stderr
    for test, told in {
        "test_plain": "no tier",
        "test_in_two": "fast and nightly",
        "TestKind::test_inner": "no tier",
        "test_many[2]": "no tier",
    }.items():
        assert f"test_planted.py::{test}: {told}" in said
    assert said.count("test_planted.py::") == 4
    assert "no tests ran" in said


def test_a_chapter_that_is_asked_for_alone_brings_its_beginning_along(tmp_path: Path) -> None:
    ended = run(tmp_path, STORY.format(second=[1, 2]), "test_planted.py::test_third")
    assert "3 passed" in ended.stdout, ended.stdout


def test_behind_a_chapter_that_failed_the_others_fail_with_its_name(tmp_path: Path) -> None:
    ended = run(tmp_path, STORY.format(second=[]))
    assert "1 failed, 1 passed, 1 error" in ended.stdout
    assert "test_second failed, and this test begins where it ends" in ended.stdout


def test_a_failure_is_told_with_the_line_that_repeats_it_and_the_seed_stands_at_both_ends(tmp_path: Path) -> None:
    planted = """
import os, pytest
pytestmark = pytest.mark.fast
def test_that_fails(): assert False
def test_that_ends_its_process(): os._exit(1)
def test_behind_it(): pass
"""
    ended = run(tmp_path, planted, "-n", "1", ZT_TEST_SEED="123")
    for test in ("test_that_fails", "test_that_ends_its_process"):
        assert f"ZT_TEST_SEED=123 .venv/bin/python -m pytest 'test_planted.py::{test}'" in ended.stdout
    assert ended.stdout.count("seed: 123 (ZT_TEST_SEED)") == 2
    assert "2 failed, 1 passed" in ended.stdout


def test_each_name_has_dice_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({seed_of(f"number {number}") for number in range(1000)}) == 1000
    before = seed_of("a")
    monkeypatch.setenv("ZT_TEST_SEED", str(run_seed() + 1))
    run_seed.cache_clear()
    try:
        assert seed_of("a") != before
    finally:
        run_seed.cache_clear()


def test_what_shares_servers_goes_together_and_what_shares_nothing_goes_alone() -> None:
    assert unit_of("tests/integration/flow/test_emitter.py::test_a[x]") == "tests/integration/flow/test_emitter.py"
    faults = "tests/integration/running/faults"
    assert unit_of(f"{faults}/test_kafka.py::test_a") == unit_of(f"{faults}/test_link.py::test_b") == faults
    assert unit_of("tests/unit/core/test_order.py::test_a[x]") == "tests/unit/core/test_order.py::test_a[x]"
    assert seconds_of("tests/integration/never/seen.py") == float("inf")
