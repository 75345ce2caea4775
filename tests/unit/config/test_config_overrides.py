"""Flags over environment over file over defaults, and the origin of each value."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.config.configurations import RIGHT, changed, found, write
from zerotail.config import (
    ByDefault,
    ConfigurationProblems,
    Flag,
    InEnvironment,
    InFile,
    InProgram,
    OnCommandLine,
    load,
    load_values,
    load_with_origins,
    origins,
)

pytestmark = pytest.mark.fast


def test_a_flag_wins_over_the_environment_and_that_over_the_file_and_that_over_the_default(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, RIGHT)
    bare = write_bare(tmp_path)
    environment = {"ZEROTAIL_SPARK__MASTER": "local[3]"}
    flags = [Flag("--master", "spark.master", "local[4]")]
    for file, given, typed, master, origin in [
        (bare, {}, [], "local[2]", ByDefault()),
        (path, {}, [], "local[2]", InFile(str(path), 20, 17)),
        (path, environment, [], "local[3]", InEnvironment("ZEROTAIL_SPARK__MASTER")),
        (path, environment, flags, "local[4]", OnCommandLine("--master")),
        (bare, {}, flags, "local[4]", OnCommandLine("--master")),
    ]:
        loaded = load_with_origins(file, given, typed)
        assert loaded.configuration.spark.master == master
        assert loaded.origin_of(("spark", "master")) == origin


def write_bare(folder: Path) -> Path:
    path = folder / "bare.yaml"
    path.write_text(changed('spark: {master: "local[2]"}\n', ""))
    return path


def test_every_value_has_an_origin(tmp_path: Path) -> None:
    path = write(tmp_path, RIGHT)
    mirrors = "[{topology: active-passive, source: east, target: west, topics: [a]}]"
    found_origins = origins(load_with_origins(path, {"ZEROTAIL_OBJECTIVES__LAG": "3s", "ZEROTAIL_MIRRORS": mirrors}))
    assert found_origins["mirrors[0].source"] == InEnvironment("ZEROTAIL_MIRRORS")
    assert found_origins["mirrors[0].engine"] == ByDefault()
    assert found_origins["name"] == InFile(str(path), 1, 7)
    assert found_origins["sites.west.database.dsn"] == InFile(str(path), 8, 21)
    assert found_origins["stages.settle.emits"] == InFile(str(path), 14, 69)
    assert found_origins["objectives.lag"] == InEnvironment("ZEROTAIL_OBJECTIVES__LAG")
    assert found_origins["restore.strategy"] == ByDefault()
    assert str(found_origins["objectives.lag"]) == "environment ZEROTAIL_OBJECTIVES__LAG"


@pytest.mark.parametrize(
    "name",
    ["ZEROTAIL_CHANNELS__BANK_2__TIMEOUT", "ZEROTAIL_channels__Bank_2__timeout"],
)
def test_names_are_found_without_capitals_and_dashes(tmp_path: Path, name: str) -> None:
    text = RIGHT.replace("bank", "bank-2", 2).replace("bank-2.example", "bank.example")
    text = text.replace("  bank:", "  bank-2:")
    configuration = load(write(tmp_path, text), {name: "3s"})
    assert configuration.channels["bank-2"].timeout.total_seconds() == 3  # type: ignore[index,union-attr]


def test_settings_with_dots_are_given_with_underscores(tmp_path: Path) -> None:
    environment = {"ZEROTAIL_SITES__EAST__KAFKA__SETTINGS__SASL_USERNAME": "zerotail"}
    flags = [Flag("--set", 'sites.east.kafka.settings."linger.ms"', "5")]
    kafka = load(write(tmp_path, RIGHT), environment, flags).sites["east"].kafka  # type: ignore[index]
    assert {name: value.written for name, value in kafka.settings.items()} == {
        "sasl.username": "zerotail",
        "linger.ms": "5",
    }


def test_a_setting_of_spark_is_given_under_its_own_name(tmp_path: Path) -> None:
    flags = [Flag("--set", 'spark.settings."spark.executor.memory"', "2g")]
    settings = load(write(tmp_path, RIGHT), {}, flags).spark.settings
    assert settings["spark.executor.memory"].written == "2g"
    (problem,) = found(tmp_path, RIGHT, {}, [Flag("--set", 'sites.east.kafka.settings."linger.m"', "2")])
    assert str(problem).endswith('did you mean "linger.ms"?')


def test_a_list_or_a_section_is_given_as_yaml(tmp_path: Path) -> None:
    environment = {
        "ZEROTAIL_STAGES__BOOK__EMITS": "[fax]",
        "ZEROTAIL_CHANNELS": "{bank: {kind: http, url: 'https://b.example', receiver: R1}, "
        "booking: {kind: topic, topic: ledger}, fax: {kind: http, url: 'https://f.example', receiver: R1}}",
    }
    configuration = load(write(tmp_path, RIGHT), environment)
    assert configuration.stages["book"].emits == ("fax",)  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("ZEROTAIL_SPRK__MASTER", "x", 'means no key: there is no sprk; did you mean "spark"?'),
        (
            "ZEROTAIL_SPARK__MATSER",
            "x",
            'means no key: there is no matser under spark; did you mean "master"?',
        ),
        (
            "ZEROTAIL_SITES__ESAT__KAFKA__BOOTSTRAP",
            "x",
            'means no key: there is no esat under sites; did you mean "east"?',
        ),
        (
            "ZEROTAIL_SPARK_MASTER",
            "x",
            "means no key: there is no spark_master; two underscores part the levels",
        ),
        ("ZEROTAIL_", "x", "means no key: there is no …"),
        (
            "ZEROTAIL_NAME__X",
            "x",
            "name has no keys below it; a list is given as a whole, such as [one, two]",
        ),
        (
            "ZEROTAIL_MIRRORS__0",
            "x",
            "mirrors has no keys below it; a list is given as a whole, such as [one, two]",
        ),
        (
            "ZEROTAIL_STAGES__BOOK__EMITS",
            "[a",
            "a bracket that was opened is not closed, or a comma is missing",
        ),
        ("ZEROTAIL_STAGES__BOOK__EMITS", "[a, ~]", "is not a complete YAML value"),
        ("ZEROTAIL_STAGES__BOOK__EMITS", "\x1f[a]", "holds a control character"),
        ("ZEROTAIL_SPARK__MASTER", "", "spark.master: must be a single value; it is empty"),
        ("ZEROTAIL_PREFER", "wset", 'prefer: there is no site named wset; did you mean "west"?'),
    ],
)
def test_a_variable_that_means_nothing_is_a_problem(tmp_path: Path, name: str, value: str, line: str) -> None:
    (problem,) = found(tmp_path, RIGHT, {name: value})
    assert str(problem) == f"environment {name}: {line}"


def test_variables_with_meanings_of_their_own_are_left_alone(tmp_path: Path) -> None:
    environment = {
        "ZEROTAIL_CONFIG": "x",
        "ZEROTAIL_CACHE": "y",
        "ZEROTAIL_LAB_DIR": "w",
        "ZEROTAILOR": "z",
        "HOME": "/",
    }
    assert found(tmp_path, RIGHT, environment) == ()


def test_a_variable_that_the_file_refers_to_may_have_any_name(tmp_path: Path) -> None:
    text = changed('dbname=core user=zerotail"}\n  west', 'password=${env:ZEROTAIL_EAST_PASSWORD}"}\n  west')
    assert found(tmp_path, text, {"ZEROTAIL_EAST_PASSWORD": "x"}) == ()
    assert len(found(tmp_path, RIGHT, {"ZEROTAIL_EAST_PASSWORD": "x"})) == 1


@pytest.mark.parametrize("key", ["", ".", "sprk.master", "name.x", "stages", '"', "a" * 10_000])
def test_a_flag_that_means_nothing_is_a_problem(tmp_path: Path, key: str) -> None:
    (problem,) = found(tmp_path, RIGHT, {}, [Flag("--set", key, "x")])
    assert str(problem).startswith("flag --set: ")
    assert len(str(problem)) < 500


def test_values_of_a_program_follow_the_rules_of_the_file(tmp_path: Path) -> None:
    values = {
        "name": "lab",
        "sites": {
            "east": {"kafka": {"bootstrap": "127.0.0.1:1"}, "database": {"dsn": "host=127.0.0.1 port=1"}},
            "west": {"kafka": {"bootstrap": "127.0.0.1:2"}, "database": {"dsn": "host=127.0.0.1 port=2"}},
        },
        "topics": {"payments": {"partitions": 2, "replication": 1}},
        "takeover": {"automatic": True, "fence": ["/bin/true"]},
    }
    configuration = load_values(values, tmp_path, {"ZEROTAIL_NAME": "other"})
    assert configuration.name == "lab"
    assert configuration.takeover.automatic is True
    with pytest.raises(ConfigurationProblems) as caught:
        load_values({**values, "prefer": "north"}, tmp_path)
    assert [problem.origin for problem in caught.value.problems] == [InProgram()]
