"""The numbers that code, tests and pages cite are those of `docs/guarantees.md`; the bugs it names are real ones."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from support.documents import INLINE, PAGES, ROOT, SOURCES, TESTS, name_of, text_of
from zerotail.simulation.bugs import BUGS

pytestmark = pytest.mark.fast

PAGE = ROOT / "docs" / "guarantees.md"
_ROW = re.compile(r"^\| ([IE]\d+) \|", re.MULTILINE)
_CITED = re.compile(r"(?<![\w.-])[IE](?!0\b)\d{1,2}\b(?!\.\d)")
_COLUMNS = ("always", "as long as", "kept by", "shown by", "planted bugs")
_BUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+$")


def find_undefined(text: str, defined: set[str]) -> list[str]:
    """The numbers that a text cites and the page does not define; I0 is the simulation's "anything else"."""
    return sorted(set(_CITED.findall(text)) - defined)


def bugs_of(page: str) -> list[str]:
    """The names under `planted bugs`, row by row: the last cell of each row."""
    rows = [line.rstrip("|").rpartition("|")[2] for line in page.splitlines() if line.startswith("|")]
    return [name for row in rows for name in INLINE.findall(row) if _BUG.match(name)]


def test_every_number_that_is_cited_is_defined_once() -> None:
    defined = _ROW.findall(text_of(PAGE))
    twice = [number for number, times in Counter(defined).items() if times > 1]
    assert not twice, f"defined twice: {twice}"
    places = [*SOURCES, *sorted((ROOT / "src").rglob("*.sql")), *sorted(TESTS.rglob("*.py")), *PAGES]
    faults = [
        f"{name_of(place)} cites {number}, which {name_of(PAGE)} does not define"
        for place in places
        for number in find_undefined(text_of(place), set(defined))
    ]
    assert not faults, "\n".join(faults)


def test_every_planted_bug_stands_behind_a_guarantee_and_is_one_that_is_looked_for() -> None:
    named = set(bugs_of(text_of(PAGE)))
    assert named - set(BUGS) == set(), "the page names bugs that nobody plants"
    assert set(BUGS) - named == set(), f"planted, and in no row of {name_of(PAGE)}"


def find_row_faults(page: str) -> list[str]:
    """Numbers that are left out, and rows that lack a column: what always holds, as long as what, kept by whom,
    shown by what, and broken by which bug. Where no bug is planted, the row says why.
    """
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if _ROW.match(line)]
    faults = [f"{cells[0]} has {len(cells)} columns" for cells in rows if len(cells) != len(_COLUMNS) + 1]
    for kind in "IE":
        found = [int(cells[0][1:]) for cells in rows if cells[0][0] == kind]
        if found != list(range(1, len(found) + 1)):
            faults.append(f"the numbers of {kind} are {found}")
    for cells in rows:
        if "not built yet" in "".join(cells):
            continue
        faults += [
            f"{cells[0]} does not say: {column}"
            for column, cell in zip(_COLUMNS, cells[1:], strict=False)
            if not cell or (column in ("always", "kept by", "shown by") and cell in ("-", "–"))
        ]
        if cells[-1].startswith(("-", "–")) and not re.fullmatch(r"[-–] \(.{10,}\)", cells[-1]):
            faults.append(f"{cells[0]} has no planted bug, and does not say why")
    return faults


def test_every_rule_has_its_condition_its_code_its_test_and_its_bug() -> None:
    assert find_row_faults(text_of(PAGE)) == []


def test_a_rule_that_lacks_something_is_noticed() -> None:
    row = "| E1 | always | - | `core/site.py` | `tests/unit/core/test_site.py` | `epoch-without-site` |"
    assert find_row_faults(row) == []
    assert find_row_faults(row.replace("E1", "E2")) == ["the numbers of E are [2]"]
    assert find_row_faults(row.replace("`core/site.py`", "-")) == ["E1 does not say: kept by"]
    assert find_row_faults(row.replace("`epoch-without-site`", "-")) == ["E1 has no planted bug, and does not say why"]
    assert find_row_faults(row.replace("`epoch-without-site`", "- (no site is simulated)")) == []
    assert find_row_faults(row.replace("| - ", "")) == ["E1 has 5 columns"]


def test_a_number_that_nobody_defines_and_a_bug_that_nobody_plants_are_noticed() -> None:
    unknown = "I" + "77"
    assert find_undefined(f"it never falls ({unknown})", {"I3"}) == [unknown]
    edge = "E" + "77"
    assert find_undefined(f"a row that nobody can take ({edge}), and E501", {"I3"}) == [edge]
    assert find_undefined("I3, I0 and 16 I/O", {"I3"}) == []
    assert bugs_of("| I3 | always | `core/head.py` | `no-such-bug` |") == ["no-such-bug"]
