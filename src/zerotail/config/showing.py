"""A configuration for the screen: effective values, where each comes from, secrets as references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from zerotail.config.loading import Loaded
from zerotail.config.origin import Origin
from zerotail.config.problem import Key, shown_key
from zerotail.config.scalar import Bytes, written_duration, written_size
from zerotail.config.secret import Secret

Shown = str | int | bool | list["Shown"] | dict[str, "Shown"]

_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*|[a-z]+\[[0-9*]+\]|[0-9]+[A-Za-z]+")
_READ_OTHERWISE = frozenset({"on", "off", "yes", "no", "true", "false", "null", "y", "n"})


def shown_values(loaded: Loaded) -> dict[str, Shown]:
    """The effective values as a file would give them; what is not given and has no default is left out."""
    shown = _shown(loaded.configuration)
    if not isinstance(shown, dict):
        raise TypeError("a configuration is a section")
    return shown


def origins(loaded: Loaded) -> dict[str, Origin]:
    """Where each single value comes from, by its key."""
    return {shown_key(key): loaded.origin_of(key) for key, _ in _leaves(shown_values(loaded), ())}


def render(loaded: Loaded, *, with_origin: bool) -> str:
    """The configuration as YAML that reads back to the same, with origins as comments."""
    lines = list(_lines(shown_values(loaded), (), loaded if with_origin else None))
    width = max(len(text) for text, _ in lines)
    return "\n".join(f"{text:<{width}}  # {origin}" if origin else text for text, origin in lines)


def _shown(value: object) -> Shown:
    match value:
        case BaseModel():
            return {key: _shown(one) for key, one in value if one is not None}
        case Mapping():
            return {str(key): _shown(one) for key, one in value.items()}
        case tuple():
            return [_shown(one) for one in value]
        case Secret():
            return value.written
        case timedelta():
            return written_duration(value)
        case Bytes():
            return written_size(value)
        case bool() | int() | str():
            return value
        case Path():
            return str(value)
        case _:
            raise TypeError(f"a configuration holds no {type(value).__name__}")


def _leaves(value: Shown, key: Key) -> Iterator[tuple[Key, Shown]]:
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from _leaves(below, (*key, name))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*key, index))
    else:
        yield key, value


def _lines(value: dict[str, Shown], key: Key, loaded: Loaded | None, indent: str = "") -> Iterator[tuple[str, str]]:
    for name, below in value.items():
        here = (*key, name)
        if isinstance(below, dict) and below:
            yield f"{indent}{_scalar(name)}:", ""
            yield from _lines(below, here, loaded, indent + "  ")
        elif isinstance(below, list) and any(isinstance(item, dict) for item in below):
            yield f"{indent}{_scalar(name)}:", ""
            for index, item in enumerate(below):
                first, *rest = _lines(item if isinstance(item, dict) else {}, (*here, index), loaded, indent + "    ")
                yield f"{indent}  - {first[0].lstrip()}", first[1]
                yield from rest
        else:
            yield f"{indent}{_scalar(name)}: {_flow(below)}", str(loaded.origin_of(here)) if loaded else ""


def _flow(value: Shown) -> str:
    match value:
        case dict():
            return "{}"
        case list():
            return f"[{', '.join(_scalar(item, in_list=True) for item in value)}]"
        case _:
            return _scalar(value)


def _scalar(value: Shown, *, in_list: bool = False) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case int():
            return str(value)
        case _:
            text = str(value)
            plain = _NEEDS_NO_QUOTES.fullmatch(text) and text.lower() not in _READ_OTHERWISE
            plain = plain and not (in_list and re.search(r"[\[\]]", text))
            return text if plain else "'" + text.replace("'", "''") + "'"
