"""The types of single values: how a text under a key is read.

Each reader takes the text as it was written and returns a value, or raises `Unfit` with a sentence that goes
on from the key. Readers never repeat the text.

    durations   a number and a unit: 250ms, 30s, 5min, 2h, 7d; one space between them is allowed
    sizes       a number and a unit: kB, MB, GB, TB count in thousands, KiB, MiB, GiB, TiB in 1024; B is bytes
    switches    on, off, yes, no, true, false
    numbers     decimal digits, groups may be parted by _ ; no leading zero, no sign, no exponent
    names       a letter, then letters, digits, single - or _ ; plain ASCII, 40 characters at most
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

from pydantic import ValidationInfo

from zerotail.config.address import brokers_of
from zerotail.config.client import require_client_setting
from zerotail.config.problem import Unfit
from zerotail.config.secret import Filling, Keeper, Secret, Template, template_of

LONGEST_NAME = 40
NAME_PATTERN = r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*"
TOPIC_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
OBJECT_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*"
TABLE_PATTERN = r"[a-z_][a-z0-9_]{0,62}(?:\.[a-z_][a-z0-9_]{0,62})?"
NUMBER_PATTERN = r"(?:0|[1-9][0-9]{0,17}|[1-9][0-9]{0,2}(?:_[0-9]{3}){1,5})"
DURATION_PATTERN = r"([0-9]{1,12}(?:\.[0-9]{1,3})?) ?(ms|s|min|h|d)"
SIZE_PATTERN = r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)"

_MILLISECONDS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_SWITCHES = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}


class Bytes(int):
    """A number of bytes; a type of its own, so that it can be written with its unit again."""


def text_of(value: object, expected: str = "must be a single value") -> str:
    """The text that was written; `Unfit` for a list, a section, nothing, or invisible characters."""
    if not isinstance(value, str):
        what = "list" if isinstance(value, (list, tuple)) else "section with keys"
        raise Unfit(f"{expected}, not a {what}")
    if not value.strip():
        raise Unfit(f"{expected}; it is empty")
    if not all(character.isprintable() for character in value):
        raise Unfit(f"{expected}; it holds a line break or an invisible character")
    return value


def read_plain_text(value: object) -> str:
    text = text_of(value)
    if "${" in text:
        raise Unfit("cannot hold a reference such as ${env:NAME}: this value is printed in plans and logs")
    return text


def shaped_reader(pattern: str, expected: str, *, longest: int = 10_000) -> Callable[[object], str]:
    """A reader of plain ASCII texts of one form; says which character is not plain."""

    def read(value: object) -> str:
        text = text_of(value, expected)
        for character in text:
            if not character.isascii():
                name = unicodedata.name(character, "a character without a name").lower()
                raise Unfit(f"{expected}; it holds U+{ord(character):04X}, {name}")
        if len(text) > longest:
            raise Unfit(f"{expected}; it is longer than {longest} characters")
        if not re.fullmatch(pattern, text):
            raise Unfit(expected)
        return text

    return read


def read_whole_number(value: object) -> int:
    text = text_of(value, "must be a whole number")
    if re.fullmatch(r"0[0-9o]+", text):
        raise Unfit("must be a whole number without a leading zero: some would read it as octal")
    if not re.fullmatch(NUMBER_PATTERN, text):
        raise Unfit("must be a whole number, such as 4 or 50_000")
    return int(text)


def read_switch(value: object) -> bool:
    text = text_of(value, "must be on or off").lower()
    if text not in _SWITCHES:
        raise Unfit("must be on or off (yes, no, true and false are read too)")
    return _SWITCHES[text]


def read_duration(value: object) -> timedelta:
    match = re.fullmatch(DURATION_PATTERN, text_of(value, "must be a duration"))
    if not match:
        raise Unfit("must be a number with its unit, such as 250ms, 30s, 5min, 2h or 7d")
    milliseconds = Fraction(match.group(1)) * _MILLISECONDS[match.group(2)]
    if not 1 <= milliseconds <= 3650 * _MILLISECONDS["d"] or milliseconds.denominator != 1:
        raise Unfit("must be a duration between 1ms and 3650d, in whole milliseconds")
    return timedelta(milliseconds=int(milliseconds))


def read_size(value: object) -> Bytes:
    match = re.fullmatch(SIZE_PATTERN, text_of(value, "must be a size"))
    if not match:
        raise Unfit("must be a number with its unit, such as 64kB, 512MB or 2GiB")
    count = Fraction(match.group(1)) * _SIZES[match.group(2)]
    if count.denominator != 1:
        raise Unfit("must be a whole number of bytes")
    return Bytes(count)


def written_duration(duration: timedelta) -> str:
    """A duration in the form in which it is read: the largest unit that needs no fraction."""
    milliseconds = round(duration / timedelta(milliseconds=1))
    unit = next(unit for unit in ("d", "h", "min", "s", "ms") if milliseconds % _MILLISECONDS[unit] == 0)
    return f"{milliseconds // _MILLISECONDS[unit]}{unit}"


def written_size(count: Bytes) -> str:
    """A size in the form in which it is read: the largest unit that needs no fraction."""
    unit = max((unit for unit in _SIZES if unit != "KB" and count % _SIZES[unit] == 0), key=lambda unit: _SIZES[unit])
    return f"{count // _SIZES[unit]}{unit}" if count else "0B"


def read_brokers(value: object) -> str:
    return ",".join(brokers_of(read_plain_text(value)))


def read_path(value: object, info: ValidationInfo) -> Path:
    return _keeper(info).folder / read_plain_text(value)


def read_command(value: object) -> tuple[str, ...]:
    try:
        words = tuple(value) if isinstance(value, (list, tuple)) else tuple(shlex.split(read_plain_text(value)))
    except ValueError as error:
        if isinstance(error, Unfit):
            raise
        raise Unfit("must be a command; a quote in it is not closed") from None
    if not words:
        raise Unfit("must be a command with its arguments")
    for word in words:
        unknown = set(re.findall(r"\{([^{}]*)\}", read_plain_text(word))) - {"site", "other"}
        if unknown:
            raise Unfit("may hold {site} and {other} in braces, and nothing else")
    return words


def read_pattern(value: object) -> str:
    text = read_plain_text(value)
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        raise Unfit("must be a regular expression, such as audit-.*") from None
    return text


def read_one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def read_client_setting(value: object) -> str:
    name = text_of(value)
    require_client_setting(name)
    return name


def read_spark_setting(value: object) -> str:
    name = text_of(value)
    if not re.fullmatch(r"spark\.[A-Za-z0-9._-]+", name):
        raise Unfit("must be the name of a Spark setting, such as spark.executor.memory")
    return name


def _keeper(info: ValidationInfo) -> Keeper:
    return info.context if isinstance(info.context, Keeper) else Keeper({}, Path.cwd(), must_be_there=False)


def secret_reader(filling: Filling, check: Callable[[Template], object]) -> Callable[[object, ValidationInfo], Secret]:
    """A reader of texts that may hold references; looks each up once, to say early what is missing."""

    def read(value: object, info: ValidationInfo) -> Secret:
        written = text_of(value)
        template = template_of(written)
        check(template)
        keeper = _keeper(info)
        if keeper.must_be_there:
            _require_references(template, keeper)
            filling(template, keeper.find)
        return Secret(written, filling, keeper)

    return read


def _require_references(template: Template, keeper: Keeper) -> None:
    missing: dict[str, str] = {}
    for reference in template.references:
        try:
            keeper.find(reference)
        except Unfit as unfit:
            missing[unfit.sentence] = unfit.suggestion
    if missing:
        raise Unfit(", and ".join(missing), next((said for said in missing.values() if said), ""))


def accept_any(_: Template) -> None:
    """Whatever is written will do."""
