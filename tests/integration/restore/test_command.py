"""`zerotail restore` as it is typed: the plan, the run, their JSON, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.command import call
from support.restoring import Disaster, disorder, make_disaster, write_log
from zerotail.lab.layout import Layout

pytestmark = [pytest.mark.servers, pytest.mark.soak]


def configured(disaster: Disaster, folder: Path) -> str:
    place = disaster.place
    site = {"kafka": {"bootstrap": place.cluster.bootstrap}, "database": {"dsn": place.dsn}}
    other = {"kafka": {"bootstrap": "127.0.0.1:9"}, "database": {"dsn": "host=127.0.0.1 port=9"}}
    producer = {"topic": str(place.topic)}
    content = {
        "name": "disaster",
        "sites": {"east": site, "west": other},
        "topics": {str(place.topic): {"partitions": 1, "replication": 1, "min_insync": 1}},
        "producers": {"cards": producer, "wires": producer},
        "stages": {"settle": {"consumes": str(place.topic), "handler": "flows:Settle"}},
    }
    file = folder / "zerotail.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)


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
