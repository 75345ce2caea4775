"""The first command of the README."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import call
from zerotail.drill.recording import read_history

pytestmark = pytest.mark.nightly


def test_the_demo_loses_a_site_and_nothing_that_was_accepted(tmp_path: Path) -> None:
    said = call("demo", "--rate", "300", "--dir", str(tmp_path / "run"), "--json", seconds=300)
    assert said.code == 0, said.err
    result = said.answer("demo")
    assert result["verdict"] == "passed"
    assert (result["lost"], result["duplicated"], result["reordered"], result["in_doubt"]) == (0, 0, 0, 0)
    assert result["received"] == result["submitted"] > 1000
    assert [fault["bit"] for fault in result["faults"]] == [True]
    assert 0 < result["takeover_seconds"] <= result["outage_seconds"]
    page = Path(result["report"]).read_text()
    assert "PASSED" in page
    assert not any(mark in page for mark in ("src=", "href=", "<script")), "the page refers to nothing outside"
    assert read_history(Path(result["history"])).damaged == ()
