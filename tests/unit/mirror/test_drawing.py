"""The plan of the mirrors as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as Tree
from pathlib import Path

import pytest

from support.command import call
from zerotail.config import load
from zerotail.mirror.drawing import draw
from zerotail.mirror.planning import observe_plan

pytestmark = pytest.mark.fast

TEXT = """\
name: shop
sites:
  east: {kafka: {bootstrap: "127.0.0.1:1"}, database: {dsn: "host=127.0.0.1 dbname=x"}}
  west: {kafka: {bootstrap: "127.0.0.1:2"}, database: {dsn: "host=127.0.0.2 dbname=x"}}
clusters: {hub: {bootstrap: "127.0.0.1:3"}, wide: {bootstrap: "127.0.0.1:4"}}
mirrors:
  - {topology: active-passive, source: east, target: west, topics: ["audit-.*"]}
  - {name: both, topology: active-active, source: east, target: west, topics: ["a<b|prices"]}
  - {name: all, topology: hub-and-spoke, source: [east, west], target: hub, topics: [trades], topic_names: prefixed}
  - {topology: stretch, source: wide, topics: [orders]}
"""


def written(folder: Path) -> str:
    (folder / "z.yaml").write_text(TEXT)
    return str(folder / "z.yaml")


def test_the_drawing_shows_every_cluster_and_every_flow(tmp_path: Path) -> None:
    configuration = load(written(tmp_path), {})
    picture = Tree.fromstring(draw(observe_plan(configuration, configuration.mirrors)))  # noqa: S314 - our own
    space = "{http://www.w3.org/2000/svg}"
    texts = [one.text or "" for one in picture.iter(f"{space}text")]
    assert {"east", "west", "hub", "wide", "a<b|prices", "trades as east.…", "trades as west.…"} <= set(texts)
    assert len(list(picture.iter(f"{space}line"))) == 5


def test_list_and_plan_answer_while_no_cluster_does(tmp_path: Path) -> None:
    file = written(tmp_path)
    listed = call("mirror", "list", "--config", file)
    assert listed.out.splitlines()[1].split() == [
        "both",
        "active-active",
        "spark",
        "east",
        "→",
        "west,",
        "west",
        "→",
        "east",
        "a<b|prices",
        "(identity)",
    ]
    assert len(call("mirror", "list", "--config", file, "--json").answer("mirror-list")["mirrors"]) == 4
    planned = call("mirror", "plan", "--config", file, "--svg", str(tmp_path / "p.svg"))
    assert planned.code == 0
    assert "? east: nobody listens at 127.0.0.1:1" in planned.out
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    wrong = call("mirror", "plan", "both", "--at", "hub", "--config", file, "--json")
    assert wrong.code == 1
    assert wrong.answer("mirror-plan")["ok"] is False


def test_a_mirror_that_does_not_exist_or_has_nothing_to_run_is_told(tmp_path: Path) -> None:
    file = written(tmp_path)
    for arguments, code, sentence in [
        (("plan", "nobody"), "ZT151", "there is no mirror 'nobody'"),
        (("run",), "ZT151", "there are several mirrors"),
        (("run", "wide"), "ZT152", "its brokers copy by themselves"),
        (("run", "both", "--accept", "all"), "ZT154", "--accept takes KIND:TOPIC"),
        (("offsets", "both", "--group", "g"), "ZT155", "several flows"),
    ]:
        answer = call("mirror", *arguments, "--config", file, "--json").answer("error")
        assert (answer["code"], answer["exit_code"]) == (code, 2)
        assert sentence in answer["message"]
    refused = call("mirror", "run", "all", "--at", "east", "--config", file, "--json").answer("error")
    assert (refused["code"], refused["exit_code"]) == ("ZT491", 3)
