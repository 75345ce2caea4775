"""Disasters on real processes, one after the other on the same two sites: each is judged, and the judges find nothing.

The sites change their roles from scene to scene and the history grows, so later scenes have a longer past. Which four
scenes are played, against which classes of receivers, comes from the seed of the run: every commit plays others, and
`make nightly` plays all of them against all receivers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import call
from support.seeds import seed_of
from zerotail.core.receiver import ReceiverClass
from zerotail.drill.run import DrillSettings
from zerotail.drill.scenarios import SCENARIOS
from zerotail.drill.theatre import Theatre

SETTINGS = DrillSettings(rate=300, rebuild_state=True, scale=0.3)
ELSEWHERE = {
    "acks": "Kafka alone, without sites",
    "demo": "site-loss and the way back, played by `make nightly`",
}
CHANCE = random.Random(seed_of("drills"))
SCENES = CHANCE.sample(sorted(SCENARIOS.keys() - ELSEWHERE.keys()), 4)
RECEIVERS = CHANCE.sample([receiver.value for receiver in ReceiverClass], 2)
"""Two, since each wants a stage of its own."""
DRAWN = list(zip(SCENES, sorted(RECEIVERS * 2), strict=True))
FIELDS = {
    *("schema", "scenario", "seed", "verdict", "lost", "duplicated", "reordered", "in_doubt", "submitted", "received"),
    *("detect_seconds", "promote_seconds", "takeover_seconds", "outage_seconds", "faults", "history", "report"),
}
"""What scripts find in the answer of `drill run --json`, whatever comes later."""


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    with Theatre(tmp_path_factory.mktemp("drills"), SETTINGS, tell=print) as theatre:
        yield theatre


@pytest.mark.servers
@pytest.mark.parametrize(("scene", "receiver"), DRAWN)
def test_nothing_is_lost_doubled_or_out_of_order_after(scene: str, receiver: str, theatre: Theatre) -> None:
    result = theatre.play(SCENARIOS[scene], receiver, seed=seed_of(scene), folder=theatre.folder / scene)
    assert result.verdict == "passed", result.reasons
    assert (result.lost, result.duplicated, result.reordered) == (0, 0, 0)
    assert result.in_doubt == 0 or receiver == ReceiverClass.R3.value, "only R3 lists doubts"
    assert all(fault.bit and fault.evidence for fault in result.faults)
    page = Path(result.report).read_text()
    assert "PASSED" in page
    assert not any(mark in page for mark in ("src=", "href=", "<script")), "the page refers to nothing outside"


@pytest.mark.nightly
def test_the_command_answers_with_one_object_and_leaves_what_it_shows(tmp_path: Path) -> None:
    words = ("site-loss", "--receiver", "R3", "--rate", "300", "--seed", "2", "--dir", str(tmp_path / "run"))
    said = call("drill", "run", *words, "--json", seconds=240)
    assert said.code == 0, said
    result = said.answer("drill-run")
    assert set(result) >= FIELDS
    assert (result["verdict"], result["receiver"], result["seed"]) == ("passed", "R3", 2)
    assert (result["lost"], result["duplicated"], result["reordered"]) == (0, 0, 0)
    assert 0 < result["promote_seconds"] < result["takeover_seconds"] <= result["outage_seconds"]
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert {name: kept[name] for name in result} == result
    steps = [step["step"] for step in kept["record"]["steps"]]
    assert steps.index("promote") < steps.index("open epoch") < steps.index("go live")
    assert {strip["partition"] for strip in kept["record"]["order"] if strip["changed_at"]} == {0, 1}
    assert {one["site"] for one in kept["record"]["received"]} == {"east", "west"}
