"""Single values: the key decides the type, whatever a value looks like."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.config.configurations import RIGHT, changed, loaded, said
from zerotail.config.problem import Unfit
from zerotail.config.scalar import (
    Bytes,
    read_duration,
    read_size,
    read_switch,
    read_whole_number,
    written_duration,
    written_size,
)

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("30s", 30), ("5 min", 300), ("5min", 300), ("1.5h", 5400), ("7d", 604800)],
)
def test_durations_are_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert read_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "-5s",
        "5 fortnights",
        "5m",
        "5  s",
        "s",
        "1e3s",
        "0x10s",
        "٥s",
        "NaN s",
        "0s",
        "99999d",
        "5s ",
        "5S",
        "5s\n",
        "1.5ms",
    ],
)
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(Unfit, match="must be a"):
        read_duration(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1B", 1),
        ("64kB", 64_000),
        ("512MB", 512_000_000),
        ("2 GB", 2 * 10**9),
        ("1.5GiB", 3 * 2**29),
        ("1KiB", 1024),
    ],
)
def test_sizes_count_in_thousands_or_in_1024_by_their_unit(text: str, count: int) -> None:
    assert read_size(text) == count


@pytest.mark.parametrize("text", ["512", "512mb", "512M", "-1MB", "1e9B", "MB", "1 PB", "٣MB", "", "1.5B"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(Unfit, match="must be a"):
        read_size(text)


@given(st.integers(1, 3650 * 86_400_000))
@settings(deadline=None)
def test_a_duration_that_is_written_reads_back(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert read_duration(written_duration(duration)) == duration


@given(st.integers(0, 10**15))
@settings(deadline=None)
def test_a_size_that_is_written_reads_back(count: int) -> None:
    assert read_size(written_size(Bytes(count))) == count


@pytest.mark.parametrize(
    ("text", "value"),
    [("on", True), ("Yes", True), ("TRUE", True), ("off", False), ("no", False), ("false", False)],
)
def test_switches_are_read_from_the_words_of_yaml(tmp_path: Path, text: str, value: bool) -> None:
    assert read_switch(text) is value
    for written in (text, f'"{text}"'):
        configuration = loaded(tmp_path, changed("automatic: off", f"automatic: {written}"))
        assert configuration.takeover.automatic is value


@pytest.mark.parametrize("text", ["0", "1", "y", "enabled", "[on]", "{on: off}"])
def test_other_switches_are_refused(tmp_path: Path, text: str) -> None:
    (line,) = said(tmp_path, changed("automatic: off", f"automatic: {text}"))
    assert "takeover.automatic: must be on or off" in line


def test_words_that_yaml_takes_for_booleans_dates_and_numbers_stay_names(tmp_path: Path) -> None:
    for word in ("no", "on", "NULL", "yes", "y", "true", "nan"):
        text = changed("prefer: east", f'prefer: "{word}"').replace("  east:", f"  {word}:")
        configuration = loaded(tmp_path, text)
        assert list(configuration.sites) == [word, "west"]
        assert configuration.preferred_site == word
        assert configuration.other_site(configuration.preferred_site) == "west"


def test_a_plain_no_is_the_name_no(tmp_path: Path) -> None:
    text = changed("prefer: east", "prefer: no").replace("  east:", "  no:")
    assert loaded(tmp_path, text).prefer == "no"


@pytest.mark.parametrize(
    "text", ["04", "0o4", "0x4", "-4", "+4", "4.0", "4e3", "٤", "1__0", "9" * 30, "1e309", "NaN", "4 "]
)
def test_numbers_that_could_be_read_in_two_ways_are_refused(text: str) -> None:
    with pytest.raises(Unfit, match="must be a whole number"):
        read_whole_number(text)


def test_numbers_may_be_grouped_and_quoted(tmp_path: Path) -> None:
    assert read_whole_number("50_000") == 50_000
    configuration = loaded(tmp_path, changed('{master: "local[2]"}', '{max_records_per_batch: "1_000"}'))
    assert configuration.spark.max_records_per_batch == 1000


def test_numbers_out_of_range_are_refused_with_the_limit(tmp_path: Path) -> None:
    assert said(tmp_path, changed("partitions: 4", "partitions: 0"))[0].endswith("must be at least 1")
    assert said(tmp_path, changed("partitions: 4", "partitions: 10_001"))[0].endswith("must be at most 10000")
    assert said(tmp_path, RIGHT + "restore: {memory: 10kB}")[0].endswith("restore.memory: must be at least 1MB")


@pytest.mark.parametrize(
    "name",
    [
        "../a",
        "a/b",
        "a b",
        "-a",
        "a-",
        "a__b",
        "a--b",
        "1a",
        "_a",
        "",
        "a.b",
        "x" * 41,
        "eаst",
        "a\\u001b[31m",
        "a\\n",
    ],
)
def test_names_that_could_mislead_are_refused_and_not_repeated(tmp_path: Path, name: str) -> None:
    lines = said(tmp_path, changed("name: settlement", f'name: "{name}"'))
    assert len(lines) == 1
    assert "zerotail.yaml:1:7: name: must be a name" in lines[0] or "must be a single value" in lines[0]
    assert "\x1b" not in lines[0]
    assert "../" not in lines[0]


def test_a_look_alike_letter_is_named(tmp_path: Path) -> None:
    (line,) = said(tmp_path, changed("name: settlement", "name: settlеment"))
    assert line.endswith("it holds U+0435, cyrillic small letter ie")


@pytest.mark.parametrize("name", ["a.b", "A-1_x", "payments"])
def test_topics_have_the_names_that_kafka_allows(tmp_path: Path, name: str) -> None:
    text = changed("topics: {", f"topics: {{{name}x: {{partitions: 1}}, ")
    assert f"{name}x" in loaded(tmp_path, text).topics


@pytest.mark.parametrize("name", ["__consumer_offsets", "..", "a/b", "a b", "x" * 201])
def test_other_names_of_topics_are_refused(tmp_path: Path, name: str) -> None:
    (line,) = said(tmp_path, changed("topics: {", f'topics: {{"{name}": {{partitions: 1}}, '))
    assert "must be a topic's name" in line


def test_a_list_where_one_value_belongs_and_the_reverse(tmp_path: Path) -> None:
    text = changed("emits: [bank, booking]", "emits: bank")
    text = changed("prefer: east", "prefer: [east]", text)
    text = changed('spark: {master: "local[2]"}', "spark: local", text)
    text = changed("{topic: payments}", "{topic: {payments: 1}}", text)
    lines = said(tmp_path, text)
    assert [line.split(": ", 1)[1] for line in lines] == [
        "prefer: must be a name: a letter, then letters, digits and single - or _ between them, not a list",
        "producers.cards.topic: must be a topic's name: up to 200 letters, digits, dots, - and _, "
        "not beginning with - or _, not a section with keys",
        "stages.settle.emits: must be a list, such as [one, two]",
        "spark: must be a section with keys",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"/opt/fence --site {site}"', ("/opt/fence", "--site", "{site}")),
        ("[/opt/fence, {other}]".replace("{other}", '"{other}"'), ("/opt/fence", "{other}")),
    ],
)
def test_a_command_is_a_text_or_a_list(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    for name in ("fence", "promote", "stop", "attach"):
        takeover = loaded(tmp_path, changed("after: 10s", f"{name}: {text}")).takeover
        assert getattr(takeover, name) == words


@pytest.mark.parametrize("text", ["'x \"'", "[]", '"x {dsn}"', '"x ${env:TOKEN}"', "[[a]]", '""'])
def test_other_commands_are_refused(tmp_path: Path, text: str) -> None:
    lines = said(tmp_path, changed("after: 10s", f"fence: {text}"))
    assert len(lines) == 1
    assert ": takeover.fence: " in lines[0]


def test_a_path_is_relative_to_the_file(tmp_path: Path) -> None:
    configuration = loaded(tmp_path, changed("{topic: payments}", "{topic: payments, source: spool, spool: queue}"))
    assert configuration.producers["cards"].spool == tmp_path / "queue"  # type: ignore[index]
