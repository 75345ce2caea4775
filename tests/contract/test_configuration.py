"""`zerotail config` keeps the rules of every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import call

pytestmark = pytest.mark.fast

SAMPLE = """
name: settlement
sites:
  east: {kafka: {bootstrap: "127.1.0.1:9092"}, database: {dsn: "host=127.1.0.9 dbname=core user=zerotail"}}
  west: {kafka: {bootstrap: "127.2.0.1:9092"}, database: {dsn: "host=127.2.0.9 dbname=core user=zerotail"}}
prefer: east
topics: {payments: {partitions: 4}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder with a configuration that can be used."""
    (tmp_path / "zerotail.yaml").write_text(SAMPLE)
    return str(tmp_path)


def test_a_good_file_is_checked_shown_and_described(folder: str) -> None:
    assert call("config", "check", folder=folder).code == 0
    assert call("config", "check", "--json", folder=folder).answer("config-check")["ok"]
    shown = call("config", "show", "--origin", "--json", folder=folder).answer("config-show")
    assert shown["configuration"]["prefer"] == "east"
    assert shown["origins"]["prefer"] == "zerotail.yaml:6:9"
    assert call("config", "show", "--json", folder=folder).answer("config-show")["file"] == "zerotail.yaml"
    assert call("config", "schema", "--json").answer("config-schema")["json_schema"]["properties"]["sites"]


def test_every_problem_is_listed_at_once_with_its_place(folder: str, tmp_path: Path) -> None:
    (tmp_path / "zerotail.yaml").write_text(SAMPLE.replace("prefer: east", "prefre: east").replace("4", "four"))
    said = call("config", "check", "--json", folder=folder)
    assert said.code == 2
    problems = said.answer("config-check")["problems"]
    assert [(problem["line"], problem["key"], problem["suggestion"]) for problem in problems] == [
        (6, "prefre", 'did you mean "prefer"?'),
        (7, "topics.payments.partitions", None),
    ]
    assert call("config", "show", "--json", folder=folder).answer("error")["code"] == "ZT112"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    said = call("config", "check", "--json", folder=str(tmp_path))
    assert said.code == 2
    assert said.answer("error")["code"] == "ZT111"
