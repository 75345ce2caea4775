"""Figures that a page quotes, each with a mark that names where it is from.

A figure in prose is followed by a comment that readers do not see: `1.5 s<!-- takeover: takeover_seconds_median -->`.
It names the result (`bench/results/takeover.json`) and what in it: a path of names, with `[*]` for every element of a
list and `[name=value,…]` for those that fit; one of `least`, `most`, `median`, `sum`, `count` in front where there are
several; `> 1.25` behind, which leaves those above it; `* 100` or `/ 1000000` for another unit. The figure must be what
is stored, rounded to the digits that are shown; zeros at the end of a whole number count as rounded, behind the first
two digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

_MARK = re.compile(
    r"(?P<shown>\d[\d,]*(?:\.\d+)?)(?P<unit>[^\d\n|<]{0,12})<!-- (?P<result>[a-z]+): "
    r"(?P<said>[^>]*(?:> ?[\d.]+[^>]*)?) -->"
)
_LOOSE_MARK = re.compile(r"<!-- [a-z]+: (?!made by)(?!docs/)[^\n]*?-->")
_SAID = re.compile(
    r"(?:(?P<fold>least|most|median|sum|count) )?(?P<path>[\w.\[\]*=,-]+)"
    r"(?: > (?P<above>[\d.]+))?(?: (?P<operation>[*/]) (?P<factor>[\d.]+))?$"
)
_STEP = re.compile(r"(?P<name>[\w-]+)(?:\[(?P<which>[^\]]+)\])?(?:\.|$)")
_FOLDS: dict[str, Callable[[Sequence[float]], float]] = {
    "least": min,
    "most": max,
    "median": median,
    "sum": sum,
    "count": len,
}
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NOT_PROSE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?")


class Unknown(Exception):
    """A mark that leads nowhere."""


@dataclass(frozen=True)
class Quoted:
    """A figure with its mark."""

    shown: str
    result: str
    said: str


def quoted_in(text: str) -> list[Quoted]:
    """Every marked figure; `Unknown` for a mark that no figure stands before."""
    found = [Quoted(one["shown"], one["result"], one["said"]) for one in _MARK.finditer(text)]
    marks = _LOOSE_MARK.findall(text)
    if len(marks) != len(found):
        raise Unknown(f"{len(marks)} marks and {len(found)} figures before them; the marks are {marks}")
    return found


def is_shown(shown: str, value: float) -> bool:
    """Whether this is the value, rounded to the digits that are shown."""
    step = 10.0 ** -_places(shown)
    return abs(float(shown.replace(",", "")) - value) <= step / 2 + 1e-9


def shown_like(shown: str, value: float) -> str:
    """Another value, rounded as this one is."""
    behind = len(shown.partition(".")[2])
    rounded = f"{round(value, _places(shown)):,.{behind}f}"
    written = rounded if is_shown(rounded, value) else f"{value:,.{behind}f}"
    return written if "," in shown or value >= 10_000 else written.replace(",", "")


def requoted(text: str, name: str, result: Mapping[str, Any]) -> str:
    """A page with the marked figures of one result as they are now; what is no longer in it stays as it is."""

    def as_it_is(mark: re.Match[str]) -> str:
        if mark["result"] != name:
            return mark[0]
        try:
            value = value_of(mark["said"], result)
        except Unknown:
            return mark[0]
        return (
            mark[0]
            if is_shown(mark["shown"], value)
            else shown_like(mark["shown"], value) + mark[0][len(mark["shown"]) :]
        )

    return _MARK.sub(as_it_is, text)


def _places(shown: str) -> int:
    """Behind the point; negative for rounded whole numbers."""
    digits = shown.replace(",", "")
    behind = len(digits.partition(".")[2])
    return behind or -min(len(digits) - len(digits.rstrip("0")), max(0, len(digits) - 2))


def value_of(said: str, result: Mapping[str, Any]) -> float:
    """What a mark says, of a result as it is stored."""
    asked = _SAID.match(said)
    if asked is None:
        raise Unknown(f"nobody understands {said!r}")
    values = [one for one in _walk(asked["path"], result) if asked["above"] is None or one > float(asked["above"])]
    if asked["fold"]:
        if not values and asked["fold"] not in ("count", "sum"):
            raise Unknown(f"{said!r} finds nothing")
        value = float(_FOLDS[asked["fold"]](values))
    elif len(values) == 1:
        value = float(values[0])
    else:
        raise Unknown(f"{said!r} finds {len(values)} figures and not one")
    factor = float(asked["factor"] or 1)
    return value / factor if asked["operation"] == "/" else value * factor


def _walk(path: str, result: Any) -> list[Any]:
    found = [result]
    place = 0
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            raise Unknown(f"nobody understands {path[place:]!r}")
        place = step.end()
        found = [inner for outer in found for inner in _step(outer, step["name"], step["which"], path)]
    return found


def _step(outer: Any, name: str, which: str | None, path: str) -> Iterator[Any]:
    if not isinstance(outer, dict) or name not in outer:
        raise Unknown(f"there is no {name!r} in {path!r}")
    inner = outer[name]
    if which is None:
        yield inner
    elif not isinstance(inner, list):
        raise Unknown(f"{name!r} in {path!r} is no list")
    else:
        wanted = {} if which == "*" else dict(one.split("=") for one in which.split(","))
        yield from (one for one in inner if all(str(one[key]) == value for key, value in wanted.items()))


def without_marks(text: str) -> str:
    """A page without its marked figures, and without comments."""
    return _COMMENT.sub("", _MARK.sub("", text))


def unmarked_in(text: str, exempt: Sequence[str]) -> list[str]:
    """Numbers of prose that have no mark and are not exempt, each with the words around it."""
    bare = _NOT_PROSE.sub(" ", without_marks(text))
    for pattern in exempt:
        bare = re.sub(pattern, " ", bare)
    return [" ".join(bare[max(0, one.start() - 30) : one.end() + 20].split()) for one in _NUMBER.finditer(bare)]
