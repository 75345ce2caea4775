"""The page and the picture say what was found, and nothing else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from dataclasses import replace
from pathlib import Path

import pytest

from zerotail.drill.durability.cells import CELLS
from zerotail.drill.durability.manual import lost, page, read_result
from zerotail.drill.durability.picture import draw

pytestmark = pytest.mark.fast

DOCS = Path(__file__).parents[3] / "docs"
FOUND = read_result(DOCS / "durability.json")


def test_the_page_and_the_picture_are_those_of_the_figures() -> None:
    assert (DOCS / "durability.md").read_text(encoding="utf-8") == page(FOUND)
    assert (DOCS / "durability.svg").read_text(encoding="utf-8") == draw(FOUND)


def test_the_figures_are_of_a_run_that_passed() -> None:
    assert FOUND.verdict == "passed"
    assert FOUND.reached["nothing_lost"]
    strong = [one for one in FOUND.cells if one.cell == "acks-all-min-2-clean" and one.promised]
    assert strong
    assert sum(one.lost for one in strong) == 0


def test_every_field_of_the_picture_shows_its_figure() -> None:
    drawn = Xml.fromstring(draw(FOUND))  # noqa: S314 - our own
    titles = [element.text or "" for element in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert [int(re.match(r"[\d,]+", title)[0].replace(",", "")) for title in titles] == [  # type: ignore[index]
        one.lost
        for cell in CELLS
        for fault in FOUND.faults
        for one in FOUND.cells
        if (one.cell, one.fault) == (cell.name, fault.name)
    ]


def test_a_fault_that_was_not_played_is_not_made_up() -> None:
    name = FOUND.faults[0].name
    without = replace(
        FOUND,
        faults=FOUND.faults[1:],
        cells=tuple(one for one in FOUND.cells if one.fault != name),
    )
    assert lost(without, name, lambda one: True) == "not played"
    assert f"| `{name}` | 0 |" in page(without)
