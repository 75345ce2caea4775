"""`zerotail config`: what it prints and how it exits, in a process of its own and in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from unit.config.configurations import RIGHT, changed, found, write
from zerotail.config import json_schema, load, load_with_origins, render

pytestmark = pytest.mark.fast

CANARY = "c4n4ry-Zq7-bird"
SOURCE = Path(__file__).resolve().parents[3] / "src"
WITH_SECRET = changed('dbname=core user=zerotail"}\n  west', 'password=${env:PW}"}\n  west')


def run(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "zerotail", "config", *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


HANDLER = """
class Settle:
    def keys(self, record): ...
    def apply(self, record, state, given): ...

Book = Settle()
"""


def write_code(folder: Path, text: str) -> None:
    """The code that the configuration names, beside it."""
    (folder / "shop").mkdir(exist_ok=True)
    (folder / "shop/flows.py").write_text(text)


def test_check_says_yes_and_exits_with_0(tmp_path: Path) -> None:
    write(tmp_path, WITH_SECRET)
    write_code(tmp_path, HANDLER)
    assert run(tmp_path, "check", PW=CANARY) == (0, "zerotail.yaml can be used.\n", "")
    code, out, _ = run(tmp_path, "check", "--json", PW=CANARY)
    assert code == 0
    assert json.loads(out) == {
        "schema": "zerotail/config-check/1",
        "ok": True,
        "file": "zerotail.yaml",
        "problems": [],
    }


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (HANDLER + "def broken(:\n", "shop.flows:Settle of stage settle cannot be loaded: SyntaxError: "),
        (HANDLER.replace("Settle", "Clear"), "shop.flows:Settle of stage settle cannot be loaded: AttributeError: "),
        (HANDLER.replace("keys", "key"), "the handler shop.flows:Settle of stage settle has no method keys"),
        ("import nowhere", "shop.flows:Settle of stage settle cannot be loaded: ModuleNotFoundError: "),
    ],
)
def test_check_finds_code_that_cannot_be_loaded(tmp_path: Path, code: str, problem: str) -> None:
    write(tmp_path, RIGHT)
    write_code(tmp_path, code)
    exit_code, out, _ = run(tmp_path, "check")
    assert exit_code == 2
    assert out.startswith(f"zerotail.yaml:14:41: stages.settle.handler: {problem}")
    if "SyntaxError" in problem:
        assert f"; correct {tmp_path / 'shop/flows.py'}, line 7\n" in out
    assert run(tmp_path, "check", "--without-code")[0] == 0


def test_check_lists_problems_and_exits_with_2(tmp_path: Path) -> None:
    write(tmp_path, changed("prefer: east", "prefer: esat", WITH_SECRET))
    code, out, err = run(tmp_path, "check")
    assert (code, err) == (2, "")
    assert out.splitlines() == [
        "zerotail.yaml:5:21: sites.east.database.dsn: refers to the environment variable PW, which is not set",
        'zerotail.yaml:9:9: prefer: there is no site named esat; did you mean "east"?',
        "2 problems",
    ]
    code, out, _ = run(tmp_path, "check", "--without-secrets", "--json")
    assert code == 2
    assert json.loads(out)["problems"] == [
        {
            "origin": "zerotail.yaml:9:9",
            "file": "zerotail.yaml",
            "line": 9,
            "column": 9,
            "key": "prefer",
            "problem": "there is no site named esat",
            "suggestion": 'did you mean "east"?',
        }
    ]


def test_show_prints_values_origins_and_no_secret(tmp_path: Path) -> None:
    write(tmp_path, WITH_SECRET)
    code, out, err = run(
        tmp_path, "show", "--origin", "--set", "objectives.lag=3s", PW=CANARY, ZEROTAIL_SPARK__MASTER="yarn"
    )
    assert (code, err) == (0, "")
    lines = [line.split("  # ") for line in out.splitlines() if "  # " in line]
    shown = {value.strip(): origin for value, origin in lines}
    assert shown["dsn: 'host=127.1.0.9 password=${env:PW}'"] == "zerotail.yaml:5:21"
    assert shown["master: yarn"] == "environment ZEROTAIL_SPARK__MASTER"
    assert shown["lag: 3s"] == "flag --set"
    assert shown["memory: 512MB"] == "default"
    code, out, _ = run(tmp_path, "show", "--json", "--origin", PW=CANARY)
    answer = json.loads(out)
    assert answer["configuration"]["takeover"]["after"] == "10s"
    assert answer["origins"]["takeover.after"] == "zerotail.yaml:19:35"
    assert CANARY not in out


def test_show_refuses_a_wrong_configuration_with_exit_code_2(tmp_path: Path) -> None:
    write(tmp_path, changed("prefer: east", "prefer: esat"))
    code, out, err = run(tmp_path, "show")
    assert (code, out) == (2, "")
    assert err.startswith("error ZT112: the configuration has a problem; nothing was contacted.\n  zerotail.yaml:9:9:")
    assert "Traceback" not in err


def test_a_secret_in_plain_text_reaches_neither_screen_nor_trace(tmp_path: Path) -> None:
    write(tmp_path, changed('user=zerotail"}\n  west', f'password={CANARY}"}}\n  west'))
    for arguments in (("check",), ("check", "--json"), ("show",), ("show", "--json")):
        code, out, err = run(tmp_path, *arguments)
        assert code == 2
        assert CANARY not in out + err


def test_without_a_file_the_way_to_one_is_shown(tmp_path: Path) -> None:
    code, out, err = run(tmp_path, "check")
    assert (code, out) == (2, "")
    assert "zerotail config check --config PATH" in err


@pytest.mark.parametrize("setting", ["spark.master", "=x"])
def test_a_setting_without_a_key_or_a_value_is_misuse(tmp_path: Path, setting: str) -> None:
    write(tmp_path, RIGHT)
    code, _, err = run(tmp_path, "show", "--set", setting)
    assert code == 2
    assert "--set takes KEY=VALUE" in err


def test_schema_prints_the_schema(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, "schema")
    assert code == 0
    assert json.loads(out) == json_schema()
    code, out, _ = run(tmp_path, "schema", "--json")
    assert json.loads(out)["json_schema"] == json_schema()


MUCH = (
    changed(
        "after: 10s",
        """after: 1.5min, fence: ["/opt/it's", "{site}: #1"], promote: 'pg promote {site}'""",
        WITH_SECRET,
    )
    + """\
producers: {cards: {topic: payments, source: spool, spool: "a queue", resend_after: 250ms}}
clusters: {"no": {bootstrap: "[::1]:9092", settings: {client.id: "yes", linger.ms: 5}}}
mirrors:
  - {topology: hub-and-spoke, source: [east, west], target: "no", topics: [".*", "a|b", "[x]"]}
  - {topology: active-passive, source: east, target: west, topics: [c]}
restore: {memory: 1.5GiB}
secrets: {folders: [more]}
objectives: {takeover: 90s, lag: 40ms}
"""
).replace("producers:\n  cards: {topic: payments}\n", "")


@pytest.mark.parametrize("text", [WITH_SECRET, MUCH])
def test_what_show_prints_reads_back_to_the_same(tmp_path: Path, text: str) -> None:
    before = load_with_origins(write(tmp_path, text), {"PW": "x"})
    for with_origin in (False, True):
        again = tmp_path / "again.yaml"
        again.write_text(render(before, with_origin=with_origin))
        assert load(again, {"PW": "x"}) == before.configuration


def test_the_schema_accepts_what_is_right_and_refuses_what_is_not(tmp_path: Path) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(yaml.safe_load(RIGHT))
    for old, new in [
        ("partitions: 4", "partitions: 0"),
        ("prefer: east", "perfer: east"),
        ("after: 10s", "after: 10"),
        ("receiver: R1", "receiver: R9"),
        ("kind: topic", "kind: tpic"),
        ("{topic: payments}", "{}"),
        ("automatic: off", "automatic: maybe"),
    ]:
        text = changed(old, new)
        assert not validator.is_valid(yaml.safe_load(text)), new
        assert found(tmp_path, text)
