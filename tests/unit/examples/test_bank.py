"""The example: its handlers do what they say whatever crashes, its configurations can be used, a wheel holds it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command import call
from support.example import flows
from zerotail.config import load
from zerotail.lab.example import EXAMPLES, example_folder
from zerotail.testing import Result, Simulation

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[3]
PAYMENTS = [
    {"id": "1", "account": "a", "amount": 100},
    {"id": "2", "account": "b", "amount": -1},
    {"id": "3", "account": "a", "amount": -60},
    {"id": "4", "account": "b", "amount": 5},
    {"id": "5", "account": "a", "amount": -41},
    {"id": "6", "account": "a", "amount": -40},
]


def said(result: Result, channel: str) -> list[Any]:
    return [one.value for one in result.accepted if one.channel == channel]


def settled(*, crash_at: int | None = None, lose_site_at: int | None = None) -> Result:
    # One producer and one partition, so that the order is the one in which the payments stand above.
    crashes = [] if crash_at is None else [crash_at]
    return Simulation(flows.Settle(), producers=1).run(PAYMENTS, crash_at=crashes, lose_site_at=lose_site_at)


def test_what_would_overdraw_an_account_is_refused_and_changes_nothing() -> None:
    result = settled()
    answers = {answer["id"]: answer["ok"] for answer in said(result, "bank")}
    assert answers == {"1": True, "2": False, "3": True, "4": True, "5": False, "6": True}
    assert result.state == {0: {"a": 0, "b": 5}}


def moments() -> Iterator[int]:
    """Every step of an undisturbed run."""
    return iter(range(1, settled().steps + 1))


def test_the_answers_are_the_same_wherever_the_stage_crashes() -> None:
    for step in moments():
        result = settled(crash_at=step)
        assert result.verdict.passed, f"crash at {step}: {result.verdict}"
        assert [(answer["id"], answer["ok"]) for answer in said(result, "bank")] == [
            (answer["id"], answer["ok"]) for answer in said(settled(), "bank")
        ]
        assert result.state == {0: {"a": 0, "b": 5}}


def test_the_answers_are_the_same_whenever_the_site_is_lost() -> None:
    for step in moments():
        result = settled(lose_site_at=step)
        assert result.verdict.passed, f"site lost at {step}: {result.verdict}"
        assert result.applied == len(PAYMENTS)
        assert result.state == {0: {"a": 0, "b": 5}}


def test_only_what_was_settled_goes_on_to_the_ledger() -> None:
    channels = {"bank": "R2", "moves": "R2"}
    result = Simulation(flows.SettleAndBook(), producers=1, channels=channels).run(PAYMENTS, crash_at=[9, 17])
    assert result.verdict.passed, str(result.verdict)
    assert [answer["id"] for answer in said(result, "bank")] == ["1", "2", "3", "4", "5", "6"]
    assert said(result, "moves") == [payment for payment in PAYMENTS if payment["id"] not in ("2", "5")]


@pytest.mark.parametrize("step", range(1, 60, 2))
def test_the_lines_of_a_statement_are_numbered_without_a_gap(step: int) -> None:
    simulation = Simulation(flows.Ledger(), producers=2, partitions=2, channels={"statements": "R2"})
    result = simulation.run(PAYMENTS * 2, crash_at=[step, step + 20], lose_site_at=step + 40)
    assert result.verdict.passed, str(result.verdict)
    for partition in (0, 1):
        for account in ("a", "b"):
            mine = [one.value for one in result.accepted if one.partition == partition]
            lines = [line["line"] for line in mine if line["account"] == account]
            assert lines == list(range(1, len(lines) + 1))


def test_a_record_holds_the_payment_and_nothing_else() -> None:
    instruction = {"id": "7", "account": "a", "amount": -5, "remark": "for the rent", "at": 17}
    assert json.loads(flows.to_record(json.dumps(instruction).encode())) == {
        "id": "7",
        "account": "a",
        "amount": -5,
        "at": 17,
    }
    assert flows.to_record(b'{"amount":1,"id":"8","account":"b"}') == b'{"id":"8","account":"b","amount":1}'


@pytest.mark.parametrize("file", EXAMPLES.values())
def test_the_configurations_can_be_used_and_name_what_is_there(file: str) -> None:
    path = str(example_folder() / file)
    assert call("config", "check", "--config", path).code == 0
    configuration = load(path)
    named = [stage.handler for stage in configuration.stages.values()]
    named += [producer.transform for producer in configuration.producers.values() if producer.transform]
    for name in named:
        module, _, attribute = name.partition(":")
        assert module == "flows"
        assert hasattr(flows, attribute)


def test_the_handlers_fit_on_one_page() -> None:
    assert len((example_folder() / "flows.py").read_text().splitlines()) <= 60


def test_an_installed_wheel_brings_the_example_along(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist"],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    (wheel,) = (tmp_path / "dist").iterdir()
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    ask = "from zerotail.lab.example import example_folder; print(example_folder())"
    found = subprocess.run(
        [sys.executable, "-c", ask],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed")},
    ).stdout.strip()
    assert found == str(tmp_path / "installed" / "zerotail" / "examples" / "bank")
    assert sorted(path.name for path in Path(found).iterdir() if path.is_file()) == sorted(
        path.name for path in example_folder().iterdir() if path.is_file()
    )
