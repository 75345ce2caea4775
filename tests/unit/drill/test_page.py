"""The report of a drill: whoever gets it handed on finds in it what was done, when, on what, and how one knows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from zerotail.drill.page import write_page
from zerotail.drill.record import record_of
from zerotail.drill.rehearsal import Event, TimedStep
from zerotail.drill.result import DrillResult, FaultTold
from zerotail.drill.surroundings import machine, time_of_day, versions

pytestmark = pytest.mark.fast

EVIDENCE = "16 processes of ours killed; connections to ports 17724 are refused"
RESULT = DrillResult(
    *("demo", 694629, "passed", 0, 0, 0, 0, 26467, 26460, 0.01, 0.35, 1.9, 1.91),
    faults=(FaultTold("site-loss east", True, tuple(EVIDENCE.split("; "))),),
    history="/somewhere/stage-1/history",
    report="",
    receiver="R0",
    rate=400.0,
    seconds=110.1,
    allowed="R0, R1, R2: nothing lost",
    reasons=("0 were accepted twice",),
    own_submitted=7911,
    own_received=7905,
    began_at="2026-11-18 03:40:11+00:00",
    ended_at="2026-11-18 03:41:24+00:00",
)
STEPS = [
    TimedStep("takeover to west", "promote", 1000.0, 1000.35),
    TimedStep("takeover to west", "go live", 1000.35, 1000.75),
    TimedStep("rejoin of east", "copy the database", 1010.0, 1013.6),
    TimedStep("handover to east", "drain", 1062.0, 1064.0),
]


@pytest.fixture
def stage(tmp_path: Path) -> Any:
    """As much of a rehearsal as a page shows."""
    (tmp_path / "zerotail.yaml").write_text("name: bank\nprefer: <east>\n")
    return SimpleNamespace(
        active="west",
        faults=[SimpleNamespace(at=999.9)],
        asked_at=1000.0,
        scene_at=995.0,
        events=[Event(999.9, "fault", "site-loss east: gone"), Event(1000.0, "act", "takeover to west")],
        steps=STEPS,
        producers={"cards": 1},
        config=lambda _site: tmp_path / "zerotail.yaml",
    )


def page(stage: Any, folder: Path, result: DrillResult = RESULT) -> str:
    path = folder / "report.html"
    ran_on = machine() | versions("host=127.0.0.1 port=1 user=nobody")
    write_page(path, result, record_of(stage, (), (), ran_on))
    return path.read_text()


def rows(html: str) -> dict[str, str]:
    """What the tables with two columns say."""
    body = html[html.index("<body>") : html.index("</html>")]
    tables = ElementTree.fromstring(body).iter("tr")  # noqa: S314 - it is our own
    return {cells[0].text or "": cells[1].text or "" for one in tables if len(cells := list(one)) == 2}


def test_it_says_when_on_what_and_with_which_seed_and_configuration(stage: Any, tmp_path: Path) -> None:
    html = page(stage, tmp_path)
    told = rows(html)
    assert "From 2026-11-18 03:40:11+00:00 to 2026-11-18 03:41:24+00:00." in html
    assert (told["scenario"], told["seed"], told["receiver"]) == ("demo", "694629", "R0")
    assert told["history"] == "/somewhere/stage-1/history"
    for name in ("cores", "memory", "kernel", "PostgreSQL", "Kafka", "Java", "Spark", "Python", "zerotail", "psycopg"):
        assert told[name], name
    assert "prefer: &lt;east&gt;" in html
    assert "Stated beforehand: R0, R1, R2: nothing lost." in html


def test_it_shows_the_evidence_of_each_fault_and_what_the_judges_say(stage: Any, tmp_path: Path) -> None:
    html = page(stage, tmp_path)
    assert f"<th>site-loss east</th><td>yes</td><td>{EVIDENCE}</td>" in html
    assert "<li>0 were accepted twice</li>" in html


def test_each_act_has_a_picture_at_its_own_scale(stage: Any, tmp_path: Path) -> None:
    html = page(stage, tmp_path)
    acts = html[html.index("Steps of the acts") : html.index("Order around the break")]
    assert re.findall("<h3>(.*?)</h3>", acts) == ["takeover to west", "rejoin of east", "handover to east"]
    first = ElementTree.fromstring(acts[acts.index("<svg") : acts.index("</svg>") + 6])  # noqa: S314 - it is our own
    widths = [float(bar.get("width", "0")) for bar in first.iter("rect")]
    assert min(widths) > 200, "the takeover fills its picture although the whole drill took a minute"
    stage.steps = []
    assert "<p>No act changed a role.</p>" in page(stage, tmp_path)


def test_in_a_series_the_drill_has_counts_of_its_own(stage: Any, tmp_path: Path) -> None:
    assert "<b>7,911 / 7,905</b><span>of these in this drill</span>" in page(stage, tmp_path)
    alone = replace(RESULT, own_submitted=RESULT.submitted, own_received=RESULT.received)
    assert "of these in this drill" not in page(stage, tmp_path, alone)
    assert "of these in this drill" not in page(stage, tmp_path, replace(RESULT, own_received=None)), "nobody counted"


def test_the_machine_is_told_without_its_name_and_a_time_with_its_offset() -> None:
    assert Path("/proc/sys/kernel/hostname").read_text().strip() not in " ".join(machine().values())
    assert time_of_day(0)[-6] in "+-"
