"""What acknowledgements are worth, on three real brokers: the short form of `zerotail bench durability`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import call


@pytest.mark.nightly
def test_acks_all_keeps_what_acks_1_loses_when_a_leader_is_killed() -> None:
    said = call("bench", "durability", "--quick", "--json", seconds=280)
    answer = said.answer("bench-durability")
    assert said.code == 0, answer["reasons"]
    assert answer["verdict"] == "passed"
    lost = {one["cell"]: one["lost"] for one in answer["cells"]}
    acknowledged = {one["cell"]: one["acknowledged"] for one in answer["cells"]}
    assert all(acknowledged.values())
    assert all(lost[f"acks-1-min-{least}-{kind}"] > 0 for least in (1, 2) for kind in ("clean", "unclean"))
    assert {lost[cell] for cell in lost if cell.startswith("acks-all")} == {0}
    assert all(one["bit"] == one["rounds"] and one["evidence"] for one in answer["faults"])


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_each_fault_takes_from_weak_settings_and_nothing_from_strong_ones(tmp_path: Path) -> None:
    said = call("drill", "run", "acks", "--json", "--dir", str(tmp_path), seconds=580)
    answer = said.answer("drill-run")
    assert said.code == 0, answer["reasons"]
    assert (answer["verdict"], answer["lost"], answer["duplicated"]) == ("passed", 0, 0)
    assert all(fault["bit"] and fault["evidence"] for fault in answer["faults"])
    assert "PASSED: 0 lost, 0 duplicated" in call("drill", "report", str(tmp_path)).out
    assert "<svg" in Path(answer["report"]).read_text()
