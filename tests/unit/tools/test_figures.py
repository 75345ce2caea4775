"""`make figures`: what is measured, what is not measured again, and what takes the place of a published figure."""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from zerotail.bench.published import PUBLISHED
from zerotail.bench.result import FlowBench, FlowResult
from zerotail.bench.stamp import MEASURED, Stamp
from zerotail.bench.stored import Stored, join, read_stored, write_stored
from zerotail.cli.bench import command as bench

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[3]
FLOW = PUBLISHED["flow"]
COMMANDS = {"flow": ("--partitions 1", "--partitions 4")}


def load_program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures_program", ROOT / "tools" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


figures = load_program()


class Typed:
    """Stands in for the benchmarks: each call leaves a result with a stamp, and ends as it was told."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.codes: list[int] = []

    def run(self, words: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        file = Path(words[words.index("--result") + 1])
        command = shlex.join(["zerotail", *words[3 : words.index("--result")]])
        self.commands.append(command)
        partitions = int(words[words.index("--partitions") + 1])
        before = read_stored(file, FlowBench) if file.exists() and "--keep" in words else Stored((), FlowBench((), {}))
        case = FlowResult(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1, 1, partitions, ())
        cases = (*(one for one in before.result.cases if one.partitions != partitions), case)
        stamp = Stamp("2026-11-18T10:00:00+00:00", "a" * 40, False, {"cores": "2"}, {}, command, MEASURED)
        write_stored(file, Stored(join(before.stamps, stamp), FlowBench(cases, {})))
        return subprocess.CompletedProcess(words, self.codes.pop(0) if self.codes else 0)


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Every stamp is of the code that is here, unless a test says otherwise."""
    typed = Typed()
    monkeypatch.setattr(figures.subprocess, "run", typed.run)
    monkeypatch.setattr(figures, "is_current", lambda stamp: stamp.commit == "a" * 40)
    return typed


@pytest.fixture
def series(tmp_path: Path) -> Any:
    page = tmp_path / FLOW.page
    page.parent.mkdir()
    page.write_text("# Benchmarks\n")
    (tmp_path / "README.md").write_text("at 7.0<!-- flow: cases[partitions=4].ratio -->\n")
    return figures.Series(tmp_path / "gathered", tmp_path, COMMANDS)


def published(series: Any) -> Stored[FlowBench] | None:
    return FLOW.read(series.root)


def test_the_figure_is_published_when_all_of_its_commands_have_ended(series: Any, typing: Typed) -> None:
    figures.measure(series, FLOW)
    assert typing.commands == ["zerotail bench flow --partitions 1", "zerotail bench flow --partitions 4"]
    stored = published(series)
    assert stored is not None
    assert [one.partitions for one in stored.result.cases] == [1, 4]
    assert [one.command for one in stored.stamps] == typing.commands
    assert "| 4 | 0 |" in (series.root / FLOW.page).read_text()
    assert not any(series.folder.iterdir()), "nothing is left of the series"
    assert figures.is_published(series, FLOW)
    assert "at 1.0<!-- flow: cases[partitions=4].ratio -->" in (series.root / "README.md").read_text()


def test_a_series_that_was_broken_off_goes_on_and_publishes_nothing_before(series: Any, typing: Typed) -> None:
    typing.codes = [0, 5]
    with pytest.raises(SystemExit) as ended:
        figures.measure(series, FLOW)
    assert ended.value.code == figures.UNFINISHED
    assert published(series) is None
    assert "1 of 2" in figures.told(series, FLOW)
    figures.measure(series, FLOW)
    assert [one.rpartition(" ")[2] for one in typing.commands] == ["1", "4", "4"]
    assert published(series) is not None


def test_a_command_that_left_half_a_result_is_typed_again(series: Any, typing: Typed) -> None:
    typing.codes = [130]
    with pytest.raises(SystemExit):
        figures.measure(series, FLOW)
    assert series.gathered("flow").exists(), "a benchmark keeps what it knows so far"
    assert len(series.left(FLOW)) == 2


def test_a_series_of_other_code_begins_anew(series: Any, typing: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    typing.codes = [0, 5]
    with pytest.raises(SystemExit):
        figures.measure(series, FLOW)
    monkeypatch.setattr(figures, "is_current", lambda _stamp: False)
    assert len(series.left(FLOW)) == 2
    typing.commands.clear()
    figures.measure(series, FLOW)
    assert len(typing.commands) == 2


def test_a_figure_that_is_not_reached_is_a_figure(series: Any, typing: Typed) -> None:
    typing.codes = [1, 1]
    figures.measure(series, FLOW)
    assert published(series) is not None


def test_what_is_published_of_this_code_by_these_commands_is_not_measured_again(
    series: Any, typing: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures.measure(series, FLOW)
    assert not figures.is_published(replace(series, commands={"flow": ("--partitions 1",)}), FLOW)
    monkeypatch.setattr(figures, "is_current", lambda _stamp: False)
    assert not figures.is_published(series, FLOW)


def test_code_that_is_in_no_commit_is_not_measured(monkeypatch: pytest.MonkeyPatch, typing: Typed) -> None:
    monkeypatch.setattr(figures, "is_dirty", lambda: True)
    with pytest.raises(SystemExit) as ended:
        figures.main(["--only", "flow"])
    assert ended.value.code == figures.WRONG_CALL
    assert typing.commands == []


def test_the_list_says_how_each_figure_stands_and_what_measures_it(capsys: pytest.CaptureFixture[str]) -> None:
    figures.main(["--list"])
    said = capsys.readouterr().out
    for name in PUBLISHED:
        assert f"\n{name} " in f"\n{said}"
    assert "zerotail bench takeover --history 10000000 --rounds 4" in said


@pytest.mark.parametrize("commands", [figures.COMMANDS, figures.QUICK], ids=["whole", "quick"])
def test_every_command_is_one_that_the_program_takes(commands: dict[str, tuple[str, ...]]) -> None:
    assert set(commands) == set(PUBLISHED)
    for name, lines in commands.items():
        known = bench.get_command(click.Context(bench), name)
        assert known is not None
        for options in lines:
            keep = ["--keep"] if len(lines) > 1 else []
            known.make_context(name, [*shlex.split(options), "--result", "x.json", *keep], resilient_parsing=False)


def test_the_pages_of_a_quick_series_are_copies(tmp_path: Path) -> None:
    root = figures.scratch(tmp_path / "quick")
    assert sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()) == [
        "docs/benchmarks.md",
        "docs/durability.md",
    ]
    assert json.dumps(figures.QUICK) != json.dumps(figures.COMMANDS)
