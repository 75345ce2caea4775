"""`zerotail restore` as it is typed: the plan, the run, their JSON, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import call
from support.restoring import configured, disorder, make_disaster, write_log
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.nightly


def test_plan_and_run_answer_for_people_and_for_programs(lab: Layout, tmp_path: Path) -> None:
    disaster = make_disaster(lab, 51)
    write_log(disaster.place, disorder(disaster.taken, 51))
    config, topic = configured(disaster, tmp_path), str(disaster.place.topic)
    planned = call("restore", "plan", "--topic", topic, "--config", config, "--json").answer("restore-plan")
    (plan,) = planned["partitions"]
    assert plan["journaled"] == len(disaster.taken)
    assert {one["strategy"] for one in plan["forecasts"]} == {
        *("skip", "ordered-refill", "unbounded", "bounded", "sort", "mirror-tail", "follower")
    }
    done = call(
        "restore", "run", "--topic", topic, "--config", config, "--strategy", "bounded", "--cache", "9", "--json"
    )
    (report,) = done.answer("restore-report")["partitions"]
    assert report["records"] == len(disaster.taken)
    assert report["outcome"]["statistics"]["peak_cache_messages"] <= 9
    spilling = ("--strategy", "bounded", "--cache", "9", "--spill", str(tmp_path), "--json")
    (spilled,) = call("restore", "run", "--topic", topic, "--config", config, *spilling).answer("restore-report")[
        "partitions"
    ]
    assert (spilled["chain"], spilled["outcome"]["reads"]) == (report["chain"], 1.0)
    assert spilled["outcome"]["statistics"]["spilled"] > 0
    told = call("restore", "run", "--topic", topic, "--config", config, "--strategy", "unbounded")
    assert told.code == 0
    assert "predicted" in told.out
    assert "outcome" in told.out
    refused = call("restore", "run", "--topic", topic, "--config", config, "--strategy", "ordered-refill")
    assert refused.code == 3
    assert "ZT482" in refused.err


def test_what_is_typed_wrong_is_said(lab: Layout, tmp_path: Path) -> None:
    disaster = make_disaster(lab, 52)
    config, topic = configured(disaster, tmp_path), str(disaster.place.topic)
    for words, code in (
        (("--topic", "nowhere"), "ZT140"),
        (("--topic", topic, "--partition", "7"), "ZT141"),
        (("--topic", topic, "--memory", "1GB", "--cache", "5"), "ZT143"),
        (("--topic", topic, "--into", topic), "ZT144"),
        (("--topic", topic, "--memory", "much"), "ZT145"),
    ):
        said = call("restore", "plan", *words, "--config", config)
        assert (said.code, code in said.err) == (2, True), said.err
