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
_CITED = re.compile(r"(?<![\w.-])I(?!0\b)\d{1,2}\b(?!\.\d)")
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
    places = [*SOURCES, *sorted(TESTS.rglob("*.py")), *PAGES]
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


def test_a_number_that_nobody_defines_and_a_bug_that_nobody_plants_are_noticed() -> None:
    unknown = "I" + "77"
    assert find_undefined(f"it never falls ({unknown})", {"I3"}) == [unknown]
    assert find_undefined("I3, I0 and 16 I/O", {"I3"}) == []
    assert bugs_of("| I3 | always | `core/head.py` | `no-such-bug` |") == ["no-such-bug"]
