"""What the documents name as proof is there, and somebody runs it.

A page that says "shown by" names a test file or a folder of them, a test, a drill, a command or a make target. Here
each of these names is looked up: a file that was renamed, a test that no tier runs, a drill that is in no catalogue
would make the page promise what nobody shows. Commands, options, links and make targets: `test_docs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.documents import (
    INLINE,
    PAGES,
    ROOT,
    SOURCES,
    TESTS,
    code_of,
    files_of_tests,
    find_command_fault,
    name_of,
    text_of,
    tiers_in,
)
from support.tiers import TIERS
from zerotail.drill.scenarios import SCENARIOS

pytestmark = pytest.mark.fast

_PROGRAMS = [*SOURCES, *(path for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__))]
_SERIES = {"all", "random", "acks"}
"""What `drill run` plays besides a scenario."""
_PYTHON_FILE = re.compile(r"[\w./-]+\.py\b")
_FOLDER = re.compile(r"tests(?:/\w+)+/?$")
_TEST = re.compile(r"(?:([\w./-]+\.py)::)?(test_\w+)$")
_VARIABLE = re.compile(r"\bZT_[A-Z_]+\b")
_DRILLS = re.compile(r"\bdrills? ((?:`[a-z…-]+`(?:, | and | or )?)+)")
_PLAYED = re.compile(r"^(?:\$ )?zerotail drill run ([a-z-]+)")
_SHOWN = re.compile(r"\]\(|`zerotail |`make ")


def find_faults(text: str) -> list[str]:
    """What a page names and what is not there."""
    code = code_of(text)
    folders = [ROOT / span for span in code if _FOLDER.match(span)]
    faults = [fault for span in code for fault in _faults_of_code(span, folders)]
    faults += [f"there is no drill {name}" for name in _drills_of(text, code) if not _is_played(name)]
    read = {name for name in _VARIABLE.findall(text) if any(f'"{name}"' in text_of(path) for path in _PROGRAMS)}
    faults += [f"nothing reads {name}" for name in sorted(set(_VARIABLE.findall(text)) - read)]
    faults += [f"a cell under `{head}` names nothing to look up: {cell}" for head, cell in _cells_without_name(text)]
    return faults


def _faults_of_code(span: str, folders: list[Path]) -> Iterator[str]:
    if _FOLDER.match(span):
        yield from _faults_of_folder(ROOT / span)
    elif test := _TEST.match(span):
        yield from _faults_of_test(test[1], test[2], folders)
    else:
        for written in _PYTHON_FILE.findall(span):
            found = _find_files(written, folders)
            if not found:
                yield f"there is no file {written}"
            for path in found:
                if path.name.startswith("test_"):
                    yield from _faults_of_file(path)


def _find_files(written: str, folders: list[Path]) -> list[Path]:
    """By a path from the root or from our package; a test's bare name by the folders that the page names, too."""
    if "/" not in written and written.startswith("test_"):
        found = files_of_tests().get(written, [])
        named = [path for path in found if any(path.is_relative_to(folder) for folder in folders)]
        return named or (found if len(found) == 1 else [])
    places = [ROOT / written, ROOT / "src" / "zerotail" / written, *ROOT.glob(f"examples/*/{written}")]
    return [path for path in places if path.is_file()][:1]


def _faults_of_folder(folder: Path) -> Iterator[str]:
    if not folder.is_dir():
        yield f"there is no folder {name_of(folder)}"
    for path in folder.rglob("test_*.py"):
        yield from _faults_of_file(path)


def _faults_of_file(path: Path) -> Iterator[str]:
    tests = tiers_in(path)
    if not tests:
        yield f"{path.name} holds no test"
    for name in tests:
        yield from _faults_of_tiers(path, name)


def _faults_of_tiers(path: Path, name: str) -> Iterator[str]:
    for tiers in tiers_in(path)[name]:
        if len(tiers) != 1:
            yield f"{path.name}::{name} is in {' and '.join(sorted(tiers)) or 'no tier'}; known are {', '.join(TIERS)}"


def _faults_of_test(file: str | None, name: str, folders: list[Path]) -> Iterator[str]:
    paths = _find_files(file, folders) if file else [path for paths in files_of_tests().values() for path in paths]
    found = [path for path in paths if name in tiers_in(path)]
    if not found:
        yield f"there is no test {name}" + (f" in {file}" if file else "")
    for path in found:
        yield from _faults_of_tiers(path, name)


def _drills_of(text: str, code: list[str]) -> Iterator[str]:
    for named in _DRILLS.findall(text):
        yield from INLINE.findall(named)
    for span in code:
        yield from _PLAYED.findall(span)


def _is_played(name: str) -> bool:
    if name.endswith("…"):
        return any(scenario.startswith(name.removesuffix("…")) for scenario in SCENARIOS)
    return name in SCENARIOS or name in _SERIES


def _cells_without_name(text: str) -> Iterator[tuple[str, str]]:
    """Cells of a column `shown by` that name neither a test nor a page, a drill, a command or a make target."""
    column = -1
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")] if line.startswith("|") else []
        if "shown by" in cells:
            column = cells.index("shown by")
        elif not cells:
            column = -1
        elif column > 0 and (cell := cells[column]).strip("-"):
            spans = INLINE.findall(cell)
            is_test = any("test_" in span or _FOLDER.match(span) for span in spans)
            if not (is_test or _SHOWN.search(cell) or _DRILLS.search(cell)):
                yield "shown by", cell


def test_what_the_documents_name_as_proof_is_there_and_run() -> None:
    faults = [f"{name_of(page)}: {fault}" for page in PAGES for fault in find_faults(text_of(page))]
    assert not faults, "\n".join(faults)


def test_the_table_of_drills_is_the_catalogue() -> None:
    page = text_of(ROOT / "docs" / "drills.md")
    table = page[page.index("\n## Scenarios\n") : page.index("`acks` is another kind of drill")]
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == sorted(SCENARIOS)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "shown by `tests/integration/running/test_nobody.py`",
            "there is no file tests/integration/running/test_nobody.py",
        ),
        ("shown by `test_nobody.py`", "there is no file test_nobody.py"),
        ("shown by `tests/unit/nowhere`", "there is no folder tests/unit/nowhere"),
        (
            "`tests/unit/test_garbage.py::test_no_such_thing`",
            "there is no test test_no_such_thing in tests/unit/test_garbage.py",
        ),
        ("`test_a_sentence_that_nobody_wrote`", "there is no test test_a_sentence_that_nobody_wrote"),
        ("drills `site-loss` and `moon-loss`", "there is no drill moon-loss"),
        ("drills `site-loss`, `false-calm-…`", "there is no drill false-calm-…"),
        ("```sh\nzerotail drill run moon-loss --seed 1\n```", "there is no drill moon-loss"),
        ("`spark/no_query.py`", "there is no file spark/no_query.py"),
        ("`ZT_TEST_MOON_KILLS=100`", "nothing reads ZT_TEST_MOON_KILLS"),
        ("| a | shown by |\n|---|---|\n| b | kills |", "a cell under `shown by` names nothing to look up: kills"),
    ],
)
def test_a_false_proof_is_found(text: str, fault: str) -> None:
    assert find_faults(text) == [fault]


@pytest.mark.parametrize(
    ("marks", "said"),
    [("", "no tier"), ("pytestmark = pytest.mark.fast\n@pytest.mark.nightly\n", "fast and nightly")],
)
def test_a_test_that_no_tier_runs_is_no_proof(tmp_path: Path, marks: str, said: str) -> None:
    path = tmp_path / "test_alone.py"
    path.write_text(f"{marks}def test_something() -> None: ...\n")
    (fault,) = _faults_of_file(path)
    assert fault == f"test_alone.py::test_something is in {said}; known are fast, servers, nightly"


def test_a_true_proof_is_none_of_them() -> None:
    assert find_faults("`tests/contract`, `test_shown_by.py`, drills `false-alarm-…`, `python bench/idle.py`") == []
    assert find_command_fault("drill run site-loss --seed 7") is None
