"""What is wrong with a configuration: all of it at once, each with its place, in plain sentences.

A sentence never repeats a value: what stands in the wrong place may be a password. Only names are repeated,
and only when they are made of plain characters; the place says where to look for anything else.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zerotail.config.origin import InFile, Origin, reading_order
from zerotail.errors import Misused

Key = tuple[str | int, ...]
"""The way from the top to a value: names of keys, and places in lists."""

MOST_WORDS_SHOWN = 20
MOST_WORDS_COMPARED = 100
MOST_PROBLEMS_SHOWN = 50
_PLAIN_WORD = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Unfit(ValueError):
    """One value does not fit; the sentence goes on from its key: "must be …"."""

    def __init__(self, sentence: str, suggestion: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.suggestion = suggestion


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct."""

    origin: Origin
    key: Key
    sentence: str
    suggestion: str = ""

    def __post_init__(self) -> None:
        # What stands where a key should be may be a password too.
        safe = tuple(part if isinstance(part, int) else shown_word(part) for part in self.key)
        object.__setattr__(self, "key", safe)

    def __str__(self) -> str:
        key = f"{shown_key(self.key)}: " if self.key else ""
        return f"{self.origin}: {key}{self.sentence}{f'; {self.suggestion}' if self.suggestion else ''}"

    def to_json(self) -> dict[str, object]:
        """The problem as `--json` shows it."""
        at = self.origin
        return {
            "origin": str(at),
            "file": at.file if isinstance(at, InFile) else None,
            "line": at.line if isinstance(at, InFile) else None,
            "column": at.column if isinstance(at, InFile) else None,
            "key": shown_key(self.key),
            "problem": self.sentence,
            "suggestion": self.suggestion or None,
        }


class ConfigurationProblems(Misused):
    """The configuration cannot be used; carries every problem that was found."""

    def __init__(self, found: Sequence[Problem], file: str) -> None:
        count = "a problem" if len(found) == 1 else f"{len(found)} problems"
        lines = "".join(f"\n  {problem}" for problem in found[:MOST_PROBLEMS_SHOWN])
        if len(found) > MOST_PROBLEMS_SHOWN:
            lines += f"\n  and {len(found) - MOST_PROBLEMS_SHOWN} more"
        super().__init__(
            f"the configuration has {count}; nothing was contacted.{lines}",
            code="ZT112",
            tries=["zerotail config check", "zerotail config schema"],
        )
        self.problems = tuple(found)
        self.file = file

    def __reduce__(self) -> tuple[type[ConfigurationProblems], tuple[tuple[Problem, ...], str]]:
        return ConfigurationProblems, (self.problems, self.file)


def in_reading_order(*steps: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems that the steps of reading found, sorted by place.

    A later step sees the consequences of what an earlier one has already said (a key without a value is then
    also missing), so it is heard only about other keys.
    """
    found: dict[Problem, None] = {}
    for step in steps:
        said = {problem.key for problem in found if problem.key}
        found.update((problem, None) for problem in step if problem.key not in said)
    return tuple(sorted(found, key=lambda problem: reading_order(problem.origin)))


def shown_word(word: str) -> str:
    """A name for the screen: as it is when made of plain characters, else an ellipsis."""
    return word if _PLAIN_WORD.fullmatch(word) else "…"


def plain_words(words: Iterable[str]) -> list[str]:
    """Those of the words that may be shown."""
    return [word for word in words if _PLAIN_WORD.fullmatch(word)]


def shown_key(key: Key) -> str:
    """`stages.settle.emits[0]`; a part with a dot in it stands in quotes."""
    shown = ""
    for part in key:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            word = shown_word(part)
            word = f'"{word}"' if "." in word else word
            shown += f".{word}" if shown else word
    return shown


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean "payments"?`, or nothing when no known word is near."""
    folded = word.casefold()[:80]
    by_folded = {other.casefold(): other for other in plain_words(known)[:MOST_WORDS_COMPARED]}
    near = difflib.get_close_matches(folded, list(by_folded), n=3, cutoff=0.6)
    if not near:
        return ""
    # Letters that only changed places are the likelier slip: esat is east, not west.
    nearest = min(near, key=lambda other: sorted(other) != sorted(folded))
    return f'did you mean "{by_folded[nearest]}"?'


def suggested(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; when none is near, the known ones."""
    shown = plain_words(known)
    some = f"known are {listed(shown[:MOST_WORDS_SHOWN], 'and')}" if shown else "there are none"
    return did_you_mean(word, shown) or (f"{some}, …" if len(shown) > MOST_WORDS_SHOWN else some)


def listed(words: Iterable[str], joined_by: str = "or") -> str:
    """`a, b or c`."""
    *first, last = list(words)
    return f"{', '.join(first)} {joined_by} {last}" if first else last
