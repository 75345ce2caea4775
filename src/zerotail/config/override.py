"""Values from the environment and the command line, laid over those of the file.

`ZEROTAIL_SPARK__MASTER` is `spark.master`: two underscores part the levels, capitals do not matter, and a
dash or a dot of a name is written as one underscore. A value that begins with [ or { is read as YAML, any
other is the text itself. Keys that the file leaves out can be given; names of sites, stages, channels and so
on cannot be made up this way, so that a mistyped name is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from zerotail.config.check import folded_name
from zerotail.config.document import Unreadable, compose_value
from zerotail.config.origin import InEnvironment, OnCommandLine, Origin
from zerotail.config.problem import Key, Problem, Unfit, did_you_mean, shown_key, shown_word
from zerotail.config.secret import environment_names_in
from zerotail.config.shape import Shape, shape_of_all
from zerotail.config.tree import Node, Section, Text, all_texts, entries_of, replaced

PREFIX = "ZEROTAIL_"
RESERVED_VARIABLES = frozenset(
    {
        "ZEROTAIL_CONFIG",
        "ZEROTAIL_CACHE",
        "ZEROTAIL_STATE",
        "ZEROTAIL_LAB_DIR",
        "ZEROTAIL_LAB_FOLDER",
        "ZEROTAIL_LAB_HISTORY",
        "ZEROTAIL_LAB_PART",
    }
)
"""Variables of other parts: the file itself, the cache, operators' notes, a lab's folder, marks on its processes."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A value from the command line: which flag was typed, the key it stands for, and its text."""

    flag: str
    key: str
    text: str


def lay_over(
    tree: Section, environment: Mapping[str, str], flags: Sequence[Flag]
) -> tuple[Section, tuple[Problem, ...]]:
    """The tree with the values of the environment and then of the flags over it."""
    found: list[Problem] = []
    for origin, words, text in [*_from_environment(tree, environment), *_from_flags(flags)]:
        try:
            key = _key_of(words, tree)
            laid = replaced(tree, key, _value_of(text, origin))
        except Unfit as unfit:
            found.append(Problem(origin, (), unfit.sentence, unfit.suggestion))
        except Unreadable as unreadable:
            found.append(unreadable.problem)
        else:
            tree = laid if isinstance(laid, Section) else tree
    return tree, tuple(found)


def _from_environment(tree: Section, environment: Mapping[str, str]) -> Iterator[tuple[Origin, list[str], str]]:
    referred = {name for text in all_texts(tree) for name in environment_names_in(text.text)}
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in RESERVED_VARIABLES | referred:
            yield InEnvironment(shown_word(name)), name.removeprefix(PREFIX).split("__"), environment[name]


def _from_flags(flags: Sequence[Flag]) -> Iterator[tuple[Origin, list[str], str]]:
    for flag in flags:
        words = [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|([^."]+)', flag.key)]
        yield OnCommandLine(flag.flag), words or [""], flag.text


def _key_of(words: Sequence[str], tree: Section) -> Key:
    """The key that the words mean, each compared without capitals, dashes and dots."""
    key: Key = ()
    shape: Shape | None = shape_of_all()
    for word in words:
        if shape is None or not shape.is_section:
            raise Unfit(f"{shown_key(key)} has no keys below it; a list is given as a whole, such as [one, two]")
        known = _known_words(shape, tree, key)
        name = _find_word(word, known) or _find_new_setting(word, shape)
        if name is None:
            where = f" under {shown_key(key)}" if key else ""
            sentence = f"means no key: there is no {shown_word(word.lower())}{where}"
            raise Unfit(sentence, did_you_mean(word, known) or _hint_about_levels(word, known))
        key, shape = (*key, name), shape.find(name)
    return key


def _find_word(word: str, known: Collection[str]) -> str | None:
    alike = (one for one in known if folded_name(one) == folded_name(word))
    return word if word in known else next(alike, None)


def _find_new_setting(word: str, shape: Shape) -> str | None:
    """A setting under its own name, dots and all; the reader knows whether it exists."""
    below = shape.find(word) if shape.has_free_names else None
    return word if below is not None and not below.is_section and "." in word else None


def _hint_about_levels(word: str, known: Collection[str]) -> str:
    is_joined = any(folded_name(word).startswith(f"{folded_name(one)}_") for one in known)
    return "two underscores part the levels" if is_joined else ""


def _known_words(shape: Shape, tree: Section, key: Key) -> Collection[str]:
    return [*shape.keys, *(entries_of(tree, key) if shape.has_free_names else ())]


def _value_of(text: str, origin: Origin) -> Node:
    if not text.lstrip().startswith(("[", "{")):
        return Text(text, origin)
    value, found = compose_value(text, "", origin)
    if found or value is None:
        raise Unfit("is not a complete YAML value")
    return value
