"""The file itself: found, read, taken apart, or refused in one sentence with its place."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from unit.config.configurations import RIGHT, changed, found, loaded, said, write
from zerotail.config import ConfigurationProblems, InFile, find_configuration_file, load
from zerotail.errors import Misused

pytestmark = pytest.mark.fast


def test_a_right_file_is_read(tmp_path: Path) -> None:
    configuration = loaded(tmp_path)
    assert list(configuration.sites) == ["east", "west"]
    assert configuration.topics["payments"].partitions == 4  # type: ignore[index]
    assert configuration.takeover.automatic is False
    assert configuration.takeover.after.total_seconds() == 10


def test_a_configuration_cannot_be_changed(tmp_path: Path) -> None:
    configuration = loaded(tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        configuration.spark.master = "yarn"


def test_problems_are_misuse_with_exit_code_2_and_carry_a_list(tmp_path: Path) -> None:
    path = write(tmp_path, changed("prefer: east", "prefer: north"))
    with pytest.raises(Misused) as caught:
        load(path, {})
    assert isinstance(caught.value, ConfigurationProblems)
    assert caught.value.exit_code == 2
    assert [problem.key for problem in caught.value.problems] == [("prefer",)]


def test_every_problem_is_reported_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = changed("partitions: 4", "partitions: four")
    text = changed("prefer: east", "prefer: esat", text)
    text = changed("spark: {master", "sparc: {master", text)
    text = changed("after: 10s", "after: 10", text)
    assert said(tmp_path, text) == [
        'zerotail.yaml:9:9: prefer: there is no site named esat; did you mean "east"?',
        "zerotail.yaml:10:33: topics.payments.partitions: must be a whole number, such as 4 or 50_000",
        "zerotail.yaml:19:35: takeover.after: must be a number with its unit, such as 250ms, 30s, 5min, 2h or 7d",
        'zerotail.yaml:20:1: sparc: there is no key sparc here; did you mean "spark"?',
    ]


def test_the_named_file_wins_over_the_variable_and_that_over_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Misused, match=r"no zerotail\.yaml in this folder") as caught:
        find_configuration_file(None, {})
    assert "zerotail config check --config PATH" in caught.value.tries
    write(tmp_path, RIGHT)
    assert find_configuration_file(None, {}) == Path("zerotail.yaml")
    assert find_configuration_file(None, {"ZEROTAIL_CONFIG": "other.yaml"}) == Path("other.yaml")
    assert find_configuration_file("named.yaml", {"ZEROTAIL_CONFIG": "other.yaml"}) == Path("named.yaml")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n# nothing but a comment\n", "is empty"),
        (b"---\n", "is empty"),
        (b"just words", "must hold keys with values"),
        (b"[a, b]", "must hold keys with values"),
        (RIGHT.encode("utf-16"), "is written in UTF-16"),
        (RIGHT.encode("utf-16-le"), "is written in UTF-16"),
        (b"name: a\0b", "holds the control character NUL"),
        (b"name: a\x07b", "holds the control character U+0007"),
        (b"name: caf\xe9", "holds bytes that are not UTF-8"),
        (b"#" * 1_000_001, "is larger than 1 MB"),
        (b"name:\n\tx: 1", "a tab is used to indent"),
        (b"name: [a, b", "a bracket that was opened is not closed"),
        (b"name: {a: ${env:HUNTER}}", 'must stand in quotes, as in "${env:NAME}"'),
        (b"name: 'a", "a quote or a bracket that was opened is never closed"),
        (b"name: a: b", "a colon stands where none can"),
        (b"name: a\nsites", "a colon is missing after a key"),
        (b"name: *hunter", "an alias (*) refers to nothing"),
        (b"name: @hunter", "with which no value can begin"),
        (b"name: a\n---\nname: b", "more than one document"),
        (b"name: !!python/object/apply:os.system [ls]", "a tag (!) has no meaning here"),
        (b"name: !secret x", "a tag (!) has no meaning here"),
        (b"name: " + b"[" * 100_000, "nested deeper than 32 levels"),
        (b"? " * 100_000, "nested deeper than 32 levels"),
        (b"- a\n" * 240_000, "more than 10000 values"),
        (b"? a\n" * 240_000, "more than 10000 values"),
        (b"name: &a [*a]", "expands to more than"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence_with_a_place(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    (problem,) = found(tmp_path, content)
    assert sentence in problem.sentence
    assert isinstance(problem.origin, InFile)
    assert "hunter" not in str(problem)


def test_the_place_of_a_bad_byte_is_counted_in_characters(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, "name: ä\r\nx: ö".encode() + b"\xff")
    assert problem.origin == InFile(str(tmp_path / "zerotail.yaml"), 2, 5)
    (problem,) = found(tmp_path, b"\xef\xbb\xbfa\0")
    assert problem.origin == InFile(str(tmp_path / "zerotail.yaml"), 1, 2)


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode()
    assert found(tmp_path, content) == ()
    wrong = content.replace(b"prefer: east", b"prefer: north")
    assert said(tmp_path, wrong)[0].startswith("zerotail.yaml:9:9: ")


def test_aliases_that_multiply_are_refused_quickly(tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    begun = time.monotonic()
    (problem,) = found(tmp_path, "\n".join(lines))
    assert "expands to more than 10000 values" in problem.sentence
    assert time.monotonic() - begun < 5


def test_of_very_many_problems_the_message_shows_the_first(tmp_path: Path) -> None:
    path = write(tmp_path, RIGHT + "".join(f"unknown{number}: 1\n" for number in range(200)))
    with pytest.raises(ConfigurationProblems) as caught:
        load(path, {})
    assert len(caught.value.problems) == 200
    assert caught.value.message.endswith("\n  and 150 more")


def test_an_alias_that_does_not_multiply_is_followed(tmp_path: Path) -> None:
    text = changed("{partitions: 4}", "&usual {partitions: 4}")
    text = changed("{partitions: 2}", "*usual", text)
    assert loaded(tmp_path, text).topics["ledger"].partitions == 4  # type: ignore[index]


def test_a_repeated_key_is_refused_with_both_places(tmp_path: Path) -> None:
    text = changed("prefer: east", "prefer: east\nprefer: west")
    (line,) = said(tmp_path, text)
    assert line.startswith("zerotail.yaml:10:1: prefer: the key prefer stands here once more")
    assert line.endswith("zerotail.yaml:9:1")


def test_merge_keys_and_keys_that_are_lists_are_refused(tmp_path: Path) -> None:
    text = changed("{partitions: 4}", "{<<: {partitions: 4}, ? [a, b] : c, partitions: 1}")
    lines = said(tmp_path, text)
    assert any("merge keys (<<) are not read" in line for line in lines)
    assert any("a key must be a single word" in line for line in lines)


def test_a_key_without_a_value_is_reported_once(tmp_path: Path) -> None:
    for nothing in ("", "~", "null"):
        lines = said(tmp_path, changed("prefer: east", f"prefer: {nothing}"))
        assert [line.split(": ")[1] for line in lines] == ["prefer"]
        assert "there is no value here" in lines[0]


def test_a_required_key_without_a_value_is_not_also_reported_as_missing(tmp_path: Path) -> None:
    lines = said(tmp_path, changed("name: settlement", "name:"))
    assert len(lines) == 1
    assert "there is no value here" in lines[0]


def test_a_missing_key_is_reported_where_its_section_begins(tmp_path: Path) -> None:
    lines = said(tmp_path, changed("{partitions: 4}", "{retention: 1d}"))
    assert lines == [
        "zerotail.yaml:10:20: topics.payments.partitions: the key partitions is missing; add it under topics.payments"
    ]


def test_paths_that_are_no_files_are_told_apart(tmp_path: Path) -> None:
    os.symlink("loop", tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    for path, sentence in [
        (tmp_path, "is a folder"),
        (tmp_path / "pipe", "is not a regular file"),
        (tmp_path / "loop", "is a symbolic link that leads back to itself"),
        (tmp_path / "missing.yaml", "does not exist"),
        (tmp_path / ("x" * 5000), "is longer than a path may be"),
        (Path("a\0b"), "is not a path"),
    ]:
        with pytest.raises(ConfigurationProblems) as caught:
            load(path, {})
        assert sentence in caught.value.message
        assert "\0" not in caught.value.message


def test_a_file_that_may_not_be_read_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, RIGHT)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigurationProblems, match="may not be read by this user"):
        load(path, {})
