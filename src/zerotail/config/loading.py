"""Reading a configuration: find the file, read it, lay environment and flags over it, check everything.

    find_configuration_file → read_file_text → compose → lay_over → the model → check

Each step reports what it finds and goes on as far as it can, so that all problems are known after one run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from zerotail.config.check import check
from zerotail.config.document import Unreadable, compose, read_file_text
from zerotail.config.model import Configuration
from zerotail.config.origin import ByDefault, InProgram, Origin
from zerotail.config.override import Flag, lay_over
from zerotail.config.problem import ConfigurationProblems, Key, Problem, in_reading_order
from zerotail.config.secret import Keeper
from zerotail.config.sentence import problems_of
from zerotail.config.tree import Node, Section, find, texts_of, tree_of, values_of
from zerotail.errors import Misused

FILE_NAME = "zerotail.yaml"
FILE_VARIABLE = "ZEROTAIL_CONFIG"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration together with where each of its values was written."""

    configuration: Configuration
    file: str
    tree: Section

    def origin_of(self, key: Key) -> Origin:
        """Where the value under `key` comes from; what was not written anywhere is a default."""
        node = find(self.tree, key)
        return node.origin if node is not None else ByDefault()


def find_configuration_file(path: str | Path | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """The file to read: the one that was named, else that of ZEROTAIL_CONFIG, else ./zerotail.yaml."""
    environment = os.environ if environment is None else environment
    named = path or environment.get(FILE_VARIABLE)
    if named:
        return Path(named)
    if not os.path.lexists(FILE_NAME):
        raise Misused(
            f"there is no {FILE_NAME} in this folder, and no other configuration file was named.",
            code="ZT111",
            tries=["zerotail config check --config PATH", f"export {FILE_VARIABLE}=PATH", "zerotail config schema"],
        )
    return Path(FILE_NAME)


def load(
    path: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Sequence[Flag] = (),
    *,
    with_secrets: bool = True,
) -> Configuration:
    """The configuration, or `ConfigurationProblems` with everything that is wrong with it."""
    return load_with_origins(path, environment, flags, with_secrets=with_secrets).configuration


def load_with_origins(
    path: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Sequence[Flag] = (),
    *,
    with_secrets: bool = True,
) -> Loaded:
    """As `load`, and where each value was written. Without secrets, references may lead nowhere."""
    environment = os.environ if environment is None else environment
    file = find_configuration_file(path, environment)
    shown = shown_path(file)
    try:
        tree, unreadable = compose(read_file_text(file, shown), shown)
    except Unreadable as error:
        raise ConfigurationProblems([error.problem], shown) from None
    folder = Path(os.path.abspath(file)).parent
    return _understand(tree, unreadable, shown, Keeper(environment, folder, (), with_secrets), flags)


def load_values(
    values: Mapping[str, object], folder: Path, environment: Mapping[str, str] | None = None
) -> Configuration:
    """A configuration from values of a program, under the rules of the file; overrides are not looked at."""
    environment = os.environ if environment is None else environment
    tree = tree_of(values, InProgram())
    if not isinstance(tree, Section):
        raise TypeError("values must be a mapping")
    return _understand(tree, (), "program", Keeper(environment, folder), (), overridable=False).configuration


def problems(
    path: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Sequence[Flag] = (),
    *,
    with_secrets: bool = True,
) -> tuple[Problem, ...]:
    """Everything that is wrong with the configuration; empty when it can be used."""
    try:
        load_with_origins(path, environment, flags, with_secrets=with_secrets)
    except ConfigurationProblems as error:
        return error.problems
    return ()


def _understand(
    tree: Section,
    unreadable: Sequence[Problem],
    shown: str,
    keeper: Keeper,
    flags: Sequence[Flag],
    *,
    overridable: bool = True,
) -> Loaded:
    tree, misdirected = lay_over(tree, keeper.environment if overridable else {}, flags)
    configuration: Configuration | None = None
    unfit: tuple[Problem, ...] = ()
    try:
        configuration = Configuration.model_validate(values_of(tree), context=_allowing(tree, keeper))
    except ValidationError as error:
        unfit = tuple(problems_of(error, tree))
    found = in_reading_order(unreadable, misdirected, unfit, check(tree))
    if found or configuration is None:
        raise ConfigurationProblems(found, shown)
    return Loaded(configuration, shown, tree)


def _allowing(tree: Node, keeper: Keeper) -> Keeper:
    """The keeper with the folders that the configuration allows, which the rest of it is read with."""
    allowed = tuple(keeper.folder / text for _, text in texts_of(tree, ("secrets", "folders")) if "\0" not in text)
    return Keeper(keeper.environment, keeper.folder, allowed, keeper.must_be_there)


def shown_path(file: Path) -> str:
    """The path for messages, without characters that would disturb a terminal."""
    return "".join(character if character.isprintable() else "?" for character in str(file))
