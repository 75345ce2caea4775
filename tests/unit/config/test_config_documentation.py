"""The page about configuration: its samples are loaded, and it names every key with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from unit.config.configurations import RIGHT, changed, found
from zerotail.config import RESERVED_VARIABLES, json_schema
from zerotail.config.client import ALLOWED_SETTINGS

pytestmark = pytest.mark.fast

WRITTEN = {"None": "none", "False": "off"}
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "configuration.md").read_text()
SAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_first_sample_is_a_complete_configuration(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "west").write_text("x\n")
    (secrets / "west").chmod(0o600)
    assert found(tmp_path, SAMPLES[0], {"EAST_PASSWORD": "x"}) == ()


def test_the_sample_of_client_settings_is_right(tmp_path: Path) -> None:
    (sample,) = [sample for sample in SAMPLES if sample.startswith("kafka:")]
    inner = "".join(f"    {line}\n" for line in sample.splitlines())
    text = changed('    kafka: {bootstrap: "127.1.0.1:9092,127.1.0.2:9092"}\n', inner)
    problems = found(tmp_path, text)
    assert ["which does not exist" in problem.sentence for problem in problems] == [True]


def test_the_sample_of_channels_is_right(tmp_path: Path) -> None:
    (sample,) = [sample for sample in SAMPLES if sample.startswith("channels:")]
    before, after = RIGHT[: RIGHT.index("channels:")], RIGHT[RIGHT.index("takeover:") :]
    text = before.replace("booking]", "fax, audit, books, next]") + sample + after
    assert found(tmp_path, text, {"BANK_TOKEN": "x"}) == ()


def test_the_sample_of_exceptions_is_right(tmp_path: Path) -> None:
    (sample,) = [sample for sample in SAMPLES if sample.startswith("security:")]
    assert found(tmp_path, RIGHT.replace("127.1.0.9", "pg-east") + sample) == ()


def test_the_sample_of_commands_is_right(tmp_path: Path) -> None:
    (sample,) = [sample for sample in SAMPLES if sample.startswith("takeover:")]
    assert found(tmp_path, RIGHT[: RIGHT.index("takeover:")] + sample) == ()


def keys_of_schema() -> Iterator[tuple[str, str, Any]]:
    """(section, key, default) of every key; the section is named as the page names it."""
    schema = json_schema()
    definitions = schema["$defs"]
    sections = {
        "Top": schema,
        "`sites.NAME`": {
            "properties": {
                **{f"kafka.{key}": value for key, value in definitions["Kafka"]["properties"].items()},
                **{f"database.{key}": value for key, value in definitions["Database"]["properties"].items()},
                **definitions["Site"]["properties"],
            }
        },
        "`topics.NAME`": definitions["Topic"],
        "`producers.NAME`": definitions["Producer"],
        "`stages.NAME`": definitions["Stage"],
        "`channels.NAME`": {
            "properties": {
                key: value
                for kind in ("HttpChannel", "KafkaChannel", "PostgresChannel", "TopicChannel")
                for key, value in definitions[kind]["properties"].items()
            }
        },
        "`restore`": definitions["Restore"],
        "`objectives`": definitions["Objectives"],
        "`takeover`": definitions["Takeover"],
        "`spark`": definitions["Spark"],
        "`mirrors[]`": definitions["Mirror"],
        "`secrets`": definitions["Secrets"],
        "`security`": definitions["Security"],
    }
    for section, described in sections.items():
        for key, value in described["properties"].items():
            yield section, key, value.get("default", "–")


def rows_of(section: str) -> dict[str, list[str]]:
    body = PAGE[PAGE.index(f"### {section}\n") :].split("\n### ")[0]
    rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row for row in rows}


@pytest.mark.parametrize(("section", "key", "default"), list(keys_of_schema()))
def test_every_key_is_on_the_page_with_its_default(section: str, key: str, default: Any) -> None:
    shown = rows_of(section)[key][-2].strip("` ")
    if key == "receiver":
        assert shown == "– (`topic`: `R0`)"
    else:
        assert shown.replace("_", "") == WRITTEN.get(str(default), str(default))


def test_the_page_has_no_key_that_does_not_exist() -> None:
    known = {(section, key) for section, key, _ in keys_of_schema()}
    for section in {section for section, _ in known}:
        assert {(section, key) for key in rows_of(section)} <= known


def test_the_page_names_the_reserved_variables() -> None:
    assert all(f"`{name}`" in PAGE for name in RESERVED_VARIABLES)


def test_no_setting_that_loads_code_or_opens_addresses_is_allowed() -> None:
    dangerous = re.compile(r"oauth|jaas|plugin|provider|callback|\.cb$|login|engine|interceptor|class")
    assert [name for name in ALLOWED_SETTINGS if dangerous.search(name)] == []
