"""pydantic's errors in our words: a key, a place and a sentence, and nothing of the value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from zerotail.config.address import looks_secret
from zerotail.config.problem import (
    Key,
    Problem,
    Unfit,
    did_you_mean,
    listed,
    shown_key,
    shown_word,
    suggested,
)
from zerotail.config.scalar import Bytes, written_size
from zerotail.config.shape import find_shape
from zerotail.config.tree import Node, find_text, origin_of_key, origin_of_value, texts_of

_COMPARED = {
    "greater_than_equal": ("ge", "must be at least {}"),
    "less_than_equal": ("le", "must be at most {}"),
}
_EXPECTED = {
    "tuple_type": "must be a list, such as [one, two]",
    "dict_type": "must be a section with keys",
    "mapping_type": "must be a section with keys",
    "model_type": "must be a section with keys",
    "model_attributes_type": "must be a section with keys",
    "dict_attributes_type": "must be a section with keys",
    "union_tag_not_found": "needs a kind: http, kafka, postgres or topic",
}


def problems_of(error: ValidationError, tree: Node) -> Iterator[Problem]:
    """The problems behind a refusal of pydantic, each with its place in the tree."""
    for details in error.errors(include_url=False, include_input=False):
        key, is_about_key = _key_of(details["loc"], details["type"])
        if details["type"] == "too_short" and any(texts_of(tree, key)):
            continue  # pydantic counts only what fits; what does not fit is reported anyway
        place = origin_of_key if is_about_key or details["type"] == "extra_forbidden" else origin_of_value
        sentence, suggestion = _sentence(details["type"], details.get("ctx", {}), key, tree)
        yield Problem(place(tree, key), key, sentence, suggestion)


def _key_of(location: Key, kind: str) -> tuple[Key, bool]:
    """The key in the file: pydantic adds the kind of a channel, and a mark where a key itself is bad."""
    is_about_key = location[-1:] == ("[key]",)
    parts = location[:-1] if is_about_key else location
    if parts[:1] == ("channels",):
        parts = parts[:2] + parts[3:]
    if kind == "union_tag_invalid":
        parts = (*parts, "kind")
    return parts, is_about_key


def _sentence(kind: str, context: Mapping[str, Any], key: Key, tree: Node) -> tuple[str, str]:
    match kind:
        case "value_error" if isinstance(context.get("error"), Unfit):
            unfit: Unfit = context["error"]
            return unfit.sentence, unfit.suggestion
        case "missing":
            return f"the key {key[-1]} is missing", f"add it under {shown_key(key[:-1])}" if key[:-1] else ""
        case "extra_forbidden":
            return _sentence_of_unknown(key)
        case "literal_error" | "union_tag_invalid":
            words = _words(context)
            known = f"must be {listed(words)}{_of_which_kind(key, tree)}"
            return known, did_you_mean(find_text(tree, key) or "", words)
        case "too_short":
            return "must not be empty", ""
        case _ if kind in _COMPARED:
            name, sentence = _COMPARED[kind]
            limit = context[name]
            return sentence.format(written_size(limit) if isinstance(limit, Bytes) else limit), ""
        case _:
            return _EXPECTED.get(kind, "does not fit here"), ""


def _of_which_kind(key: Key, tree: Node) -> str:
    """The classes that a receiver can have depend on the kind of its channel."""
    is_receiver = key[:1] == ("channels",) and key[-1] == "receiver"
    return f" for a channel of kind {find_text(tree, (*key[:-1], 'kind'))}" if is_receiver else ""


def _words(context: Mapping[str, Any]) -> list[str]:
    return re.findall(r"'([^']*)'", str(context.get("expected") or context.get("expected_tags") or ""))


def _sentence_of_unknown(key: Key) -> tuple[str, str]:
    name = str(key[-1])
    section = find_shape(key[:-1])
    known = section.keys if section else ()
    if looks_secret(name) and not did_you_mean(name, known):
        how = "secrets stand by reference where they are used, such as password=${env:NAME} in a dsn"
        return f"there is no key {shown_word(name)} here", how
    return f"there is no key {shown_word(name)} here", suggested(name, known)
