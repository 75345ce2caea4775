"""The page and the picture say what was found, and nothing else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from dataclasses import replace
from pathlib import Path

import pytest

from zerotail.bench.stored import Stored, read_stored
from zerotail.drill.durability.cells import CELLS
from zerotail.drill.durability.judgement import spared
from zerotail.drill.durability.manual import lost, page_of, write_page
from zerotail.drill.durability.picture import draw
from zerotail.drill.durability.result import DurabilityResult

pytestmark = pytest.mark.fast

STORED = read_stored(Path(__file__).parents[3] / "bench" / "results" / "durability.json", DurabilityResult)
FOUND = STORED.result


def test_the_page_and_the_picture_are_written_beside_each_other(tmp_path: Path) -> None:
    write_page(STORED, tmp_path / "durability.md")
    assert (tmp_path / "durability.md").read_text(encoding="utf-8") == page_of(STORED)
    assert (tmp_path / "durability.svg").read_text(encoding="utf-8") == draw(FOUND)


def test_a_zero_that_the_emulation_makes_is_no_promise_kept() -> None:
    made = [one for one in FOUND.cells if spared(one)]
    assert {(one.fault, one.flushed) for one in made} == {("leader-loses-power", True), ("all-lose-power", True)}
    page = page_of(STORED)
    for one in made:
        assert f"| {one.lost:,} / {one.acknowledged:,} † |" in page
    counted = sum(one.promised for one in FOUND.cells) - len(made)
    assert f"nothing lost in {counted} cells that promise it" in page
    flushed = sum(one.acknowledged for one in made if one.fault == "leader-loses-power")
    plain = [
        one for one in FOUND.cells if one.fault == "leader-loses-power" and one.cell.startswith("acks-all-min-2-clean")
    ]
    assert f"0 of {sum(one.acknowledged for one in plain) - flushed:,} lost when the leader lost everything" in page


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
    assert f"| `{name}` | 0 |" in page_of(Stored((), without))
