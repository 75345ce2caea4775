"""The shape of a configuration, read off its JSON schema: which keys may stand where.

One description serves the suggestions for unknown keys, the names of environment variables and the editor.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import DictSchema

from zerotail.config.model import Configuration
from zerotail.config.problem import Key
from zerotail.config.scalar import Bytes, written_duration, written_size

SCHEMA_NAME = "zerotail/configuration/1"


class _Generator(GenerateJsonSchema):
    """pydantic's generator, with defaults as they are written and no names but allowed ones."""

    def encode_default(self, dft: Any) -> Any:
        match dft:
            case BaseModel():
                return {}
            case timedelta():
                return written_duration(dft)
            case Bytes():
                return written_size(dft)
            case _:
                return super().encode_default(dft)

    def dict_schema(self, schema: DictSchema) -> dict[str, Any]:
        described = super().dict_schema(schema)
        if "patternProperties" in described:
            described["additionalProperties"] = False
        return described


def json_schema() -> dict[str, Any]:
    """The JSON schema of the file, for editors and other programs."""
    schema = Configuration.model_json_schema(schema_generator=_Generator)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$id"] = SCHEMA_NAME
    schema["title"] = "zerotail configuration"
    return schema


@dataclass(frozen=True, slots=True)
class Shape:
    """What may stand at one place; several alternatives for channels, whose kind decides."""

    alternatives: tuple[Mapping[str, Any], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that may stand here; where names are free, none but the known settings."""
        words = {key: None for schema in self.alternatives for key in schema.get("properties", {})}
        for schema in self.alternatives:
            words.update(dict.fromkeys(schema.get("propertyNames", {}).get("enum", ())))
        return tuple(words)

    @property
    def has_free_names(self) -> bool:
        """Whether the names of what stands here are chosen by the user."""
        return bool(self._below_free_names)

    @property
    def _below_free_names(self) -> list[Mapping[str, Any]]:
        below: list[Mapping[str, Any]] = []
        for schema in self.alternatives:
            below += schema.get("patternProperties", {}).values()
            if isinstance(schema.get("additionalProperties"), Mapping):
                below.append(schema["additionalProperties"])
        return below

    @property
    def is_section(self) -> bool:
        """Whether keys stand here, not a single value or a list."""
        return any(schema.get("type") == "object" for schema in self.alternatives)

    def find(self, key: str) -> Shape | None:
        """The shape below `key`, if something may stand there."""
        named = [one["properties"][key] for one in self.alternatives if key in one.get("properties", {})]
        below = named or self._below_free_names
        return Shape(tuple(one for schema in below for one in _expanded(schema))) if below else None


def _expanded(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A schema without references: one for each alternative."""
    if "$ref" in schema:
        return _expanded(_definitions()[schema["$ref"].rpartition("/")[2]])
    several = schema.get("oneOf") or schema.get("anyOf")
    return [one for alternative in several for one in _expanded(alternative)] if several else [schema]


@functools.cache
def _whole() -> dict[str, Any]:
    return json_schema()


def _definitions() -> Mapping[str, Any]:
    definitions: Mapping[str, Any] = _whole()["$defs"]
    return definitions


def shape_of_all() -> Shape:
    """The shape of the whole file."""
    return Shape((_whole(),))


def find_shape(key: Key) -> Shape | None:
    """The shape at a place, if anything may stand there."""
    shape: Shape | None = shape_of_all()
    for part in key:
        if shape is None:
            return None
        if isinstance(part, int):
            items = [schema["items"] for schema in shape.alternatives if "items" in schema]
            shape = Shape(tuple(one for schema in items for one in _expanded(schema))) if items else None
        else:
            shape = shape.find(part)
    return shape
