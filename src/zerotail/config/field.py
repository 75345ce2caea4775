"""The types of the model's fields: a reader of `scalar.py`, a Python type, and its JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from zerotail.config import scalar
from zerotail.config.address import (
    connection_options,
    fill_connection,
    fill_header,
    fill_url,
    require_web_address,
)
from zerotail.config.client import ALLOWED_SETTINGS
from zerotail.config.secret import HIDDEN, Secret, fill_plainly
from zerotail.core import identity


def _text(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$", "examples": list(examples)})


_name = BeforeValidator(
    scalar.shaped_reader(
        scalar.NAME_PATTERN,
        "must be a name: a letter, then letters, digits and single - or _ between them",
        longest=scalar.LONGEST_NAME,
    )
)
_topic_name = BeforeValidator(
    scalar.shaped_reader(
        scalar.TOPIC_PATTERN,
        "must be a topic's name: up to 200 letters, digits, dots, - and _, not beginning with - or _",
    )
)
_object = BeforeValidator(
    scalar.shaped_reader(scalar.OBJECT_PATTERN, "must name a Python object as module:name, such as shop.flows:Settle")
)
_table = BeforeValidator(
    scalar.shaped_reader(scalar.TABLE_PATTERN, "must be a table's name in small letters, such as orders or shop.orders")
)
_hidden = PlainSerializer(lambda _: HIDDEN, return_type=str)
_reference = WithJsonSchema({"type": "string", "description": "Secrets as ${env:NAME} or ${file:path}."})

_named = _text(scalar.NAME_PATTERN, "east")
_topic_named = _text(scalar.TOPIC_PATTERN, "payments")

Name = Annotated[str, _name, _named]
SiteName = Annotated[identity.SiteName, _name, _named]
StageName = Annotated[identity.StageName, _name, _named]
ProducerName = Annotated[identity.ProducerName, _name, _named]
ChannelName = Annotated[identity.ChannelName, _name, _named]
TopicName = Annotated[identity.TopicName, _topic_name, _topic_named]
ObjectPath = Annotated[str, _object, _text(scalar.OBJECT_PATTERN, "shop.flows:Settle")]
TableName = Annotated[str, _table, _text(scalar.TABLE_PATTERN, "shop.orders")]
PlainText = Annotated[str, BeforeValidator(scalar.read_plain_text), WithJsonSchema({"type": "string"})]

whole = BeforeValidator(scalar.read_whole_number)
Switch = Annotated[
    bool,
    BeforeValidator(scalar.read_switch),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"enum": ["on", "off", "yes", "no"]}]}),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(scalar.read_duration),
    PlainSerializer(lambda duration: duration.total_seconds(), return_type=float),
    _text(scalar.DURATION_PATTERN, "30s", "5min"),
]
Size = Annotated[scalar.Bytes, BeforeValidator(scalar.read_size), _text(scalar.SIZE_PATTERN, "512MB")]

Brokers = Annotated[
    str,
    BeforeValidator(scalar.read_brokers),
    WithJsonSchema({"type": "string", "examples": ["kafka-1:9092,kafka-2:9092"]}),
]
FilePath = Annotated[Path, BeforeValidator(scalar.read_path), WithJsonSchema({"type": "string"})]
Command = Annotated[
    tuple[str, ...],
    BeforeValidator(scalar.read_command),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
Pattern = Annotated[str, BeforeValidator(scalar.read_pattern), WithJsonSchema({"type": "string", "format": "regex"})]

ConnectionString = Annotated[
    Secret, BeforeValidator(scalar.secret_reader(fill_connection, connection_options)), _hidden, _reference
]
WebAddress = Annotated[
    Secret, BeforeValidator(scalar.secret_reader(fill_url, require_web_address)), _hidden, _reference
]
HeaderValue = Annotated[
    Secret, BeforeValidator(scalar.secret_reader(fill_header, scalar.accept_any)), _hidden, _reference
]
SettingValue = Annotated[
    Secret, BeforeValidator(scalar.secret_reader(fill_plainly, scalar.accept_any)), _hidden, _reference
]
HeaderName = Annotated[
    str,
    BeforeValidator(scalar.shaped_reader(r"[A-Za-z][A-Za-z0-9-]*", "must be a header's name", longest=100)),
    _text(r"[A-Za-z][A-Za-z0-9-]*", "Authorization"),
]
ClientSettings = Annotated[
    Mapping[Annotated[str, BeforeValidator(scalar.read_client_setting)], SettingValue],
    Field(json_schema_extra={"propertyNames": {"enum": sorted(ALLOWED_SETTINGS)}}),
]
SparkSetting = Annotated[str, BeforeValidator(scalar.read_spark_setting), _text(r"spark\..+", "spark.executor.memory")]
Names = Annotated[
    tuple[Name, ...],
    BeforeValidator(scalar.read_one_or_more),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
