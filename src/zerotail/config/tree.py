"""What was written, before it is understood: sections, lists and texts, each with its place.

Every single value is a text here. Which type it has is decided by the key it stands under, never by its
looks: `no` is false under `automatic` and a word under `name`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from zerotail.config.origin import Origin
from zerotail.config.problem import Key


@dataclass(frozen=True, slots=True)
class Text:
    """A single value."""

    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Listing:
    """Values in a row."""

    items: tuple[Node, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands under a key, and where the key itself stands."""

    key_origin: Origin
    value: Node


@dataclass(frozen=True, slots=True)
class Section:
    """Values under keys, in the order in which they were written."""

    entries: Mapping[str, Entry]
    origin: Origin


Node = Text | Listing | Section


def find(node: Node | None, key: Key) -> Node | None:
    """What stands under `key`, if anything does."""
    for part in key:
        match node, part:
            case Section(entries), str() if part in entries:
                node = entries[part].value
            case Listing(items), int() if part < len(items):
                node = items[part]
            case _:
                return None
    return node


def find_text(node: Node | None, key: Key) -> str | None:
    """The single value under `key`, if there is one."""
    found = find(node, key)
    return found.text if isinstance(found, Text) else None


def entries_of(node: Node | None, key: Key) -> Mapping[str, Entry]:
    """The section under `key`; empty when something else, or nothing, stands there."""
    found = find(node, key)
    return found.entries if isinstance(found, Section) else {}


def texts_of(node: Node | None, key: Key) -> Iterator[tuple[int, str]]:
    """The single values of the list under `key`, each with its place in the list."""
    found = find(node, key)
    for index, item in enumerate(found.items if isinstance(found, Listing) else ()):
        if isinstance(item, Text):
            yield index, item.text


def origin_of_value(node: Node, key: Key) -> Origin:
    """Where the value under `key` stands; for a value that is missing, where its section begins."""
    for length in range(len(key), -1, -1):
        found = find(node, key[:length])
        if found is not None:
            return found.origin
    return node.origin


def origin_of_key(node: Node, key: Key) -> Origin:
    """Where the last part of `key` itself stands, not its value."""
    section = find(node, key[:-1])
    if isinstance(section, Section) and key and key[-1] in section.entries:
        return section.entries[str(key[-1])].key_origin
    return origin_of_value(node, key)


def all_texts(node: Node) -> Iterator[Text]:
    """Every single value, from top to bottom."""
    match node:
        case Text():
            yield node
        case Listing(items):
            for item in items:
                yield from all_texts(item)
        case Section(entries):
            for entry in entries.values():
                yield from all_texts(entry.value)


def values_of(node: Node) -> object:
    """The tree as plain values, without places."""
    match node:
        case Text(text):
            return text
        case Listing(items):
            return tuple(values_of(item) for item in items)
        case Section(entries):
            return {key: values_of(entry.value) for key, entry in entries.items()}


def replaced(node: Node | None, key: Key, value: Node) -> Node:
    """The tree with `value` under `key`; sections on the way there are made when they are missing."""
    if not key:
        return value
    entries = dict(node.entries) if isinstance(node, Section) else {}
    origin = node.origin if isinstance(node, Section) else value.origin
    name = str(key[0])
    before = entries.get(name)
    entries[name] = Entry(
        before.key_origin if before else value.origin,
        replaced(before.value if before else None, key[1:], value),
    )
    return Section(entries, origin)


def tree_of(values: object, origin: Origin) -> Node:
    """Plain values of a program as a tree, all with one origin."""
    match values:
        case Mapping():
            entries = {str(key): Entry(origin, tree_of(value, origin)) for key, value in values.items()}
            return Section(entries, origin)
        case list() | tuple():
            return Listing(tuple(tree_of(value, origin) for value in values), origin)
        case bool():
            return Text("true" if values else "false", origin)
        case _:
            return Text(str(values), origin)
