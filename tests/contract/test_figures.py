"""What a page says of a measurement is what was measured: made from a stored result that says where it is from."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.figures import Unknown, is_shown, quoted_in, requoted, shown_like, unmarked_in, value_of
from zerotail.bench.published import PUBLISHED, Published
from zerotail.bench.stamp import MEASURED, RECORDED, Stamp

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
STORED = [one for one in PUBLISHED.values() if one.result_in(ROOT).exists()]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
_MADE = re.compile(r"<!-- (bench [a-z]+): made by the command -->")
_SECTION = re.compile(r"<!-- (bench [a-z]+): made by the command -->.*?<!-- end of \1 -->", re.DOTALL)
_NAMES = (r"MirrorMaker 2", r"\[\d{4}", r"Python 3\.11", r"Java 17")
LIMITS = (
    r"100 (blows|kills)|killed 100 times",  # how hard a test strikes; `ZT_TEST_…` says so
    r"the \d+ (rules|about clients)",  # of the audit
    r"1\.25(?= times)",  # the goal of a restore
    r"\d GiB of (memory|disk)",  # that a lab wants
    r"99 in 100",
)
"""Numbers of prose that are no measurement."""


def name_of(one: Published | Path) -> str:
    return one.name if isinstance(one, Published) else str(one.relative_to(ROOT))


@pytest.mark.parametrize("one", PUBLISHED.values(), ids=name_of)
def test_a_made_section_is_byte_for_byte_what_the_stored_result_makes(one: Published, tmp_path: Path) -> None:
    page = ROOT / one.page
    copy = tmp_path / page.name
    shutil.copy(page, copy)
    one.write_page(one.read(ROOT), copy)
    how = f"type: zerotail bench {one.name} --from bench/results/{one.name}.json --page {one.page}"
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), how
    for picture in tmp_path.glob("*.svg"):
        assert picture.read_bytes() == (page.parent / picture.name).read_bytes(), how


def test_every_result_and_every_made_section_is_one_that_is_checked() -> None:
    assert {file.stem for file in RESULTS.iterdir()} <= set(PUBLISHED)
    made = {(name_of(page), name) for page in PAGES for name in _MADE.findall(page.read_text(encoding="utf-8"))}
    assert made == {(one.page, f"bench {one.name}") for one in PUBLISHED.values()}


@pytest.mark.parametrize("one", STORED, ids=name_of)
def test_a_result_says_when_of_which_commit_on_what_and_by_which_command_it_was_measured(one: Published) -> None:
    stored = one.read(ROOT)
    assert stored is not None
    assert stored.stamps, f"{one.name} has no stamp"
    for stamp in stored.stamps:
        assert faults_of(stamp, one) == []


def faults_of(stamp: Stamp, one: Published) -> list[str]:
    """What a stamp lacks; one that was taken from history says no more than history proves."""
    faults = []
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", stamp.date):
        faults.append(f"date {stamp.date!r} is none in UTC")
    if not re.fullmatch(r"[0-9a-f]{40}", stamp.commit):
        faults.append(f"commit {stamp.commit!r} is no full hash")
    if not stamp.command.startswith(f"zerotail bench {one.name}"):
        faults.append(f"command {stamp.command!r} is another one")
    if stamp.source == MEASURED:
        lacking = {"cores", "memory", "kernel", "processor", "load"} - stamp.machine.keys()
        lacking |= {"Python", "Spark", "Kafka", "PostgreSQL", "librdkafka", "Java"} - stamp.versions.keys()
        faults += [f"nothing about {name}" for name in sorted(lacking)]
        faults += ["nobody knows whether the code was that of the commit"] if stamp.dirty is None else []
    elif stamp.source != RECORDED:
        faults.append(f"source {stamp.source!r}")
    return faults


@pytest.mark.parametrize("one", STORED, ids=name_of)
def test_a_result_is_of_a_commit_that_is_part_of_this_history(one: Published) -> None:
    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False)

    whole = git("rev-parse", "--is-shallow-repository")
    if whole.returncode or whole.stdout.strip() != "false":
        pytest.fail(f"the history is not here, and results cannot be placed in it: type git fetch --unshallow, or clone"
                    f" ({whole.stderr.strip() or 'a shallow clone'})")  # fmt: skip
    stored = one.read(ROOT)
    assert stored is not None
    for stamp in stored.stamps:
        asked = git("merge-base", "--is-ancestor", stamp.commit, "HEAD")
        assert asked.returncode == 0, f"{one.name} was measured at {stamp.commit}, which does not lead to HEAD"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_figure_that_a_page_quotes_is_the_one_that_is_stored(page: Path) -> None:
    for one in quoted_in(page.read_text(encoding="utf-8")):
        file = RESULTS / f"{one.result}.json"
        assert file.exists(), f"{page.name} quotes {one.shown} of {file.name}, which is not there"
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["result"]
        value = value_of(one.said, result)
        assert is_shown(one.shown, value), f"{page.name} says {one.shown}, and {one.result}: {one.said} is {value}"


def _prose() -> dict[str, str]:
    """The parts of pages in which every number is a figure until it is known to be none."""

    def part(page: str, heading: str) -> str:
        text = (ROOT / page).read_text(encoding="utf-8")
        found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found, f"{page} has no {heading}"
        return found[1]

    return {
        "README.md": (ROOT / "README.md").read_text(encoding="utf-8"),
        "docs/benchmarks.md": _SECTION.sub("", (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")),
        "docs/journal.md": part("docs/journal.md", "## What it costs"),
        "docs/mirrors.md": part("docs/mirrors.md", "## How fast"),
    }


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md", "docs/journal.md", "docs/mirrors.md"])
def test_a_number_in_prose_about_measurements_has_a_mark_or_is_none(page: str) -> None:
    prose = _prose()[page]
    assert len(prose) > 100
    assert unmarked_in(prose, (*_NAMES, *LIMITS)) == [], "a figure is followed by <!-- result: path -->"


def test_a_mark_is_resolved_and_compared_by_the_digits_that_are_shown() -> None:
    result = {"a": {"b": 1.5364}, "rows": [{"m": "x", "v": 2324}, {"m": "y", "v": 5184}]}
    assert value_of("a.b", result) == 1.5364
    assert is_shown("1.5", 1.5364)
    assert not is_shown("1.4", 1.5364)
    assert is_shown("1.54", 1.5364)
    assert value_of("rows[m=y].v", result) == 5184
    assert value_of("least rows[*].v", result) == 2324
    assert value_of("count rows[*].v > 3000", result) == 1
    assert value_of("a.b * 100", result) == pytest.approx(153.64)
    assert is_shown("2,300", 2324)
    assert not is_shown("2,300", 2362)
    assert is_shown("10", 10.4)
    assert not is_shown("10", 14)
    for wrong in ("a.c", "rows.v", "rows[*].v", "rows[m=z].v", "a.b ** 2"):
        with pytest.raises(Unknown):
            value_of(wrong, result)


@pytest.mark.parametrize(
    ("shown", "value", "written"),
    [
        ("1.5", 1.2384, "1.2"),
        ("2,300", 2962, "3,000"),
        ("2,300", 24, "24"),
        ("10", 14.2, "14"),
        ("182", 1830.4, "1830"),
    ],
)
def test_a_new_figure_is_written_like_the_one_before_it(shown: str, value: float, written: str) -> None:
    assert shown_like(shown, value) == written
    assert is_shown(written, value)


def test_a_page_gets_the_new_figures_of_one_result_and_keeps_all_else() -> None:
    page = "1.5 s<!-- a: x -->, 2,300<!-- b: x --> and 7 of 9<!-- a: gone -->; 3<!-- a: count y[*].z > 1.25 --> of them"
    new = {"x": 1.24, "y": [{"z": 2}, {"z": 1}]}
    changed = page.replace("1.5 s", "1.2 s").replace("; 3<", "; 1<")
    assert requoted(page, "a", new) == changed
    assert requoted(changed, "a", new) == changed


def test_a_number_without_a_mark_and_a_mark_without_a_number_are_found() -> None:
    marked = "1.5 s<!-- takeover: a --> and 5<!-- restore: count rows[*].v > 1.25 --> of them"
    assert [(one.shown, one.said) for one in quoted_in(marked)] == [("1.5", "a"), ("5", "count rows[*].v > 1.25")]
    assert unmarked_in(f"in {marked}, `--cache 100`, [more](page-7.md), R2, ten", ()) == []
    assert unmarked_in("took 3.2 s, twice", ()) == ["took 3.2 s, twice"]
    assert unmarked_in("MirrorMaker 2", (r"MirrorMaker 2",)) == []
    with pytest.raises(Unknown):
        quoted_in("about half<!-- takeover: a -->")
