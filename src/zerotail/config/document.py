"""From the bytes of a YAML file to a tree, with the line and column of everything.

Only the composer of PyYAML is used: it knows the places and builds no objects. Texts stay texts, so the
booleans, dates and octal numbers that YAML sees in plain words never arise. What a configuration does not
need and an attacker might use is refused: tags, merge keys, aliases that multiply, deep nesting, large files.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any

import yaml
from yaml.reader import Reader

from zerotail.config.origin import InFile, Origin
from zerotail.config.problem import Key, Problem, shown_word
from zerotail.config.tree import Entry, Listing, Node, Section, Text

LARGEST_FILE_BYTES = 1_000_000
LARGEST_TREE_NODES = 10_000
LARGEST_DEPTH = 32

_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})

# What PyYAML says, and what we say instead: its own words may repeat what stands in the file.
_SENTENCES = (
    (r"found character '\\t'", "a tab is used to indent; use spaces"),
    (r"found character", "a character stands here with which no value can begin; put the value in quotes"),
    (r"could not find expected ':'", "a colon is missing after a key"),
    (
        r"mapping values are not allowed",
        "a colon stands where none can; put the text in quotes, or indent the line",
    ),
    (
        r"undefined alias",
        "an alias (*) refers to nothing; put the value in quotes if it begins with an asterisk",
    ),
    (r"duplicate anchor", "an anchor (&) is defined twice"),
    (
        r"expected ',' or '[}\]]', but got '[{\[]'",
        'inside brackets a value that holds { or [ must stand in quotes, as in "${env:NAME}"',
    ),
    (r"expected ',' or '[}\]]'", "a bracket that was opened is not closed, or a comma is missing"),
    (r"expected <block end>", "the line is not indented like the ones it belongs to"),
    (r"unexpected end of stream", "a quote or a bracket that was opened is never closed"),
    (r"but found another document", "the file holds more than one document; only one is read"),
    (
        r"unknown escape character",
        "a backslash in double quotes is not followed by a known letter; use single quotes",
    ),
)


class Unreadable(Exception):
    """The text cannot be read as a tree at all; carries the one problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read_file_text(path: Path, shown: str) -> str:
    """The text of the configuration file, or `Unreadable` with a sentence about what is in the way."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            what = "a folder" if path.is_dir() else "not a regular file"
            raise _unreadable(shown, f"is {what}; give the path of a YAML file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(shown, _sentence_of_os_error(error)) from None
    except ValueError:
        raise _unreadable(shown, "is not a path") from None
    return decode(content, shown)


def _sentence_of_os_error(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return "does not exist"
        case errno.EACCES | errno.EPERM:
            return "may not be read by this user"
        case errno.ELOOP:
            return "is a symbolic link that leads back to itself"
        case errno.ENAMETOOLONG:
            return "is longer than a path may be"
        case _:
            return f"cannot be read ({os.strerror(error.errno or errno.EIO)})"


def decode(content: bytes, shown: str) -> str:
    """The bytes as text: UTF-8, with or without its byte order mark, without control characters."""
    if len(content) > LARGEST_FILE_BYTES:
        raise _unreadable(shown, f"is larger than {LARGEST_FILE_BYTES // 1_000_000} MB, which no configuration needs")
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or content[:2].count(0) == 1:
        raise _unreadable(shown, "is written in UTF-16; save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        raise _unreadable(shown, "holds bytes that are not UTF-8", _place_behind(before, shown)) from None
    forbidden = Reader.NON_PRINTABLE.search(text)
    if forbidden:
        what = "NUL" if forbidden.group() == "\0" else f"U+{ord(forbidden.group()):04X}"
        place = _place_behind(text[: forbidden.start()], shown)
        raise _unreadable(shown, f"holds the control character {what}", place)
    return text


def _place_behind(before: str, shown: str) -> InFile:
    lines = re.split(r"\r\n|[\r\n\x85\u2028\u2029]", before)
    return InFile(shown, len(lines), len(lines[-1]) + 1)


def _unreadable(shown: str, sentence: str, place: InFile | None = None) -> Unreadable:
    return Unreadable(Problem(place or InFile(shown, 1, 1), (), f"the configuration file {sentence}"))


class _Composer(yaml.SafeLoader):
    """PyYAML's composer with limits, checked while reading: nothing deep or large is ever built."""

    depth = 0
    composed = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        self.depth += 1
        self.composed += 1
        if self.depth > LARGEST_DEPTH:
            raise yaml.composer.ComposerError(None, None, "too deep", event.start_mark)
        if self.composed > 2 * LARGEST_TREE_NODES:
            raise yaml.composer.ComposerError(None, None, "too many", event.start_mark)
        if getattr(event, "tag", None) not in (None, "!"):
            raise yaml.composer.ComposerError(None, None, "tagged", event.start_mark)
        node: Any = super().compose_node(parent, index)
        self.depth -= 1
        return node  # type: ignore[no-any-return]


def compose(text: str, shown: str) -> tuple[Section, tuple[Problem, ...]]:
    """The tree that a YAML text describes, and the problems that leave it readable; else `Unreadable`."""
    tree, found = compose_value(text, shown)
    if tree is None:
        raise _unreadable(shown, "is empty; `zerotail config schema` says what belongs in it")
    if not isinstance(tree, Section):
        raise _unreadable(shown, "must hold keys with values, such as `name: settlement`", _file_place(tree))
    return tree, found


def compose_value(text: str, shown: str, origin: Origin | None = None) -> tuple[Node | None, tuple[Problem, ...]]:
    """Any YAML value as a tree; with `origin`, everything is said to stand there instead of in a file."""
    if Reader.NON_PRINTABLE.search(text):
        raise Unreadable(Problem(origin or InFile(shown, 1, 1), (), "holds a control character"))
    loader = _Composer(text)
    try:
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_problem_of(error, shown, origin)) from None
    finally:
        loader.dispose()
    if root is None or _is_nothing(root):
        return None, ()
    planter = _Planter(shown, origin)
    return planter.plant(root, ()), tuple(planter.found)


def _problem_of(error: yaml.MarkedYAMLError, shown: str, origin: Origin | None) -> Problem:
    mark = error.problem_mark or error.context_mark
    place: Origin = origin or (InFile(shown, mark.line + 1, mark.column + 1) if mark else InFile(shown, 1, 1))
    said = error.problem or ""
    if said == "too deep":
        return Problem(place, (), f"values are nested deeper than {LARGEST_DEPTH} levels")
    if said == "too many":
        return Problem(place, (), f"the file holds more than {LARGEST_TREE_NODES} values")
    if said == "tagged":
        return Problem(place, (), "a tag (!) has no meaning here; put the value in quotes if it begins with !")
    sentence = next((ours for theirs, ours in _SENTENCES if re.search(theirs, said)), "this is not valid YAML")
    return Problem(place, (), sentence)


def _is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NOTHING


def _file_place(node: Node) -> InFile | None:
    return node.origin if isinstance(node.origin, InFile) else None


class _Planter:
    """Turns PyYAML's nodes into a tree. Aliases share nodes, so what is counted is what they expand to."""

    def __init__(self, shown: str, origin: Origin | None) -> None:
        self.found: list[Problem] = []
        self._shown = shown
        self._origin = origin
        self._planted = 0

    def plant(self, node: yaml.Node, key: Key) -> Node:
        self._planted += 1
        place = self._place(node)
        if self._planted > LARGEST_TREE_NODES or len(key) > LARGEST_DEPTH:
            sentence = f"the file expands to more than {LARGEST_TREE_NODES} values or {LARGEST_DEPTH} levels"
            raise Unreadable(Problem(place, (), f"{sentence}; write less, or without aliases"))
        match node:
            case yaml.MappingNode():
                return Section(self._entries(node, key), place)
            case yaml.SequenceNode():
                items = [
                    self.plant(item, (*key, index))
                    for index, item in enumerate(node.value)
                    if not self._has_no_value(item, (*key, index))
                ]
                return Listing(tuple(items), place)
            case _:
                return Text(str(node.value), place)

    def _entries(self, node: yaml.MappingNode, key: Key) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            place = self._place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self.found.append(Problem(place, key, "a key must be a single word, not a list or a section"))
                continue
            name = str(key_node.value)
            if name == "<<":
                self.found.append(Problem(place, (*key, name), "merge keys (<<) are not read; repeat the values"))
            elif name in entries:
                first = entries[name].key_origin
                sentence = f"the key {shown_word(name)} stands here once more; it was first written at {first}"
                self.found.append(Problem(place, (*key, name), sentence))
            elif not self._has_no_value(value_node, (*key, name)):
                entries[name] = Entry(place, self.plant(value_node, (*key, name)))
        return entries

    def _has_no_value(self, node: yaml.Node, key: Key) -> bool:
        if not _is_nothing(node):
            return False
        sentence = "there is no value here; give one, or remove the key to get the default"
        self.found.append(Problem(self._place(node), key, sentence))
        return True

    def _place(self, node: yaml.Node) -> Origin:
        return self._origin or InFile(self._shown, node.start_mark.line + 1, node.start_mark.column + 1)
