"""Whatever stands in the file, the environment or a flag: a configuration, or problems with places; never a
crash.
"""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unit.config.configurations import RIGHT, write
from zerotail.config import Flag, InFile, load, problems
from zerotail.config.problem import Problem

pytestmark = pytest.mark.fast

WORDS = sorted(
    set(yaml.safe_load(RIGHT)) | {"kafka", "bootstrap", "dsn", "partitions", "kind", "http", "emits", "R1", "off"}
)
scalars = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(
        [
            "5s",
            "512MB",
            "~",
            "04",
            "${env:A}",
            "${file:b}",
            "host=a",
            "a:1",
            "https://a",
            "local[2]",
            "{site}",
        ]
    ),
    st.text(max_size=12),
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(),
)
trees = st.recursive(
    scalars,
    lambda below: st.one_of(
        st.lists(below, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), below, max_size=5),
    ),
    max_leaves=25,
)
yamlish = st.lists(
    st.sampled_from(
        [
            *WORDS,
            ":",
            ": ",
            "\n",
            "\n  ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            ",",
            "&a ",
            "*a",
            "!x ",
            "|\n",
            "'",
            '"',
            "#",
            "? ",
            "<<",
            "\t",
            "\\",
            "%",
            "@",
            "---\n",
            "...",
            "\r",
            "\u2028",
            "\ufeff",
            "ä",
        ]
    ),
    max_size=40,
).map("".join)


patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def judge(content: bytes, environment: dict[str, str] | None = None, flags: list[Flag] | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), content)
        found = problems(path, environment or {}, flags or [])
        if not found:
            load(path, environment or {}, flags or [])
        else:
            lines = len(content.decode("utf-8", "replace").splitlines()) + 1
            for problem in found:
                assert_well_formed(problem, str(path), lines)


def assert_well_formed(problem: Problem, file: str, lines: int) -> None:
    if isinstance(problem.origin, InFile):
        assert problem.origin.file == file
        assert 1 <= problem.origin.line <= lines
        assert problem.origin.column >= 1
    text = str(problem).removeprefix(file)
    assert text.isprintable()
    assert len(text) < 2000
    assert problem.sentence
    assert "does not fit here" not in problem.sentence, "an error of pydantic without words of ours"
    assert not any(word in text for word in ("pydantic", "Input should", "Value error"))


@given(st.binary(max_size=200))
@patient
def test_any_bytes(content: bytes) -> None:
    judge(content)


@given(yamlish)
@patient
def test_anything_that_resembles_yaml(text: str) -> None:
    judge(text.encode())


@given(st.dictionaries(st.sampled_from(sorted(yaml.safe_load(RIGHT))), trees))
@patient
def test_any_tree_under_known_keys(tree: dict[str, Any]) -> None:
    judge(yaml.safe_dump(tree, allow_unicode=True).encode())


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """The right configuration with one value or subtree replaced."""
    tree = yaml.safe_load(RIGHT)
    at = tree
    while True:
        key = draw(st.sampled_from(list(at) if isinstance(at, dict) else list(range(len(at)))))
        if not isinstance(at[key], (dict, list)) or not at[key] or draw(st.booleans()):
            at[key] = draw(trees)
            return str(yaml.safe_dump(tree, allow_unicode=True))
        at = at[key]


@given(damaged())
@settings(patient, max_examples=300)
def test_a_right_file_with_something_else_in_one_place(text: str) -> None:
    judge(text.encode())


@given(st.integers(0, len(RIGHT)), st.integers(0, 20), st.text(max_size=6))
@settings(patient, max_examples=300)
def test_a_right_file_with_a_slip_of_the_keyboard(at: int, length: int, typed: str) -> None:
    judge((RIGHT[:at] + typed + RIGHT[at + length :]).encode())


names = st.lists(st.one_of(st.sampled_from([word.upper() for word in WORDS]), st.text(max_size=8)), max_size=4)


@given(st.dictionaries(names.map(lambda parts: "ZEROTAIL_" + "__".join(parts)), st.one_of(yamlish, st.text())))
@patient
def test_any_variables(environment: dict[str, str]) -> None:
    judge(RIGHT.encode(), environment)


@given(st.lists(st.builds(Flag, st.just("--set"), names.map(".".join), st.one_of(yamlish, st.text()))))
@patient
def test_any_flags(flags: list[Flag]) -> None:
    judge(RIGHT.encode(), None, flags)


CANARY = "c4n4ry!Zq7"


@st.composite
def planted(draw: st.DrawFn) -> str:
    """The right configuration with a secret in some wrong place, as a value, as a key or inside a value."""
    lines = RIGHT.splitlines()
    number = draw(st.integers(0, len(lines) - 1))
    words = [at for at, character in enumerate(lines[number]) if character.isalnum()]
    at = draw(st.sampled_from(words))
    form = draw(
        st.sampled_from(["{}", " {} ", "password={} ", " password={}", "'{}'", '"{}"', "*{}", "!{} ", ": {}", "{{{}}}"])
    )
    lines[number] = lines[number][:at] + form.format(CANARY) + lines[number][at:]
    return "\n".join(lines)


@given(planted())
@settings(patient, max_examples=300)
def test_what_stands_in_a_wrong_place_is_never_repeated(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for problem in problems(write(Path(folder), text), {}):
            assert CANARY not in f"{problem} {problem!r} {problem.to_json()} {pickle.dumps(problem)!r}"
