"""Quantities that pages state, and the list of those that come from no stored result.

A quantity is a number with a unit behind it, or one with a point or a comma in it. A page has it from a stored result
(then it stands in a made section, or has a mark: `figures.py`), or from what a command printed (`outputs.py`), or it is
written down in `tests/contract/quantities.toml`, under the reason why it is no figure of ours. So no quantity comes
into a page, or is changed there, without somebody saying what it is.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from support.figures import without_marks
from support.outputs import without_outputs

LIST = Path(__file__).parents[1] / "contract" / "quantities.toml"
_MADE = re.compile(r"<!-- (bench [a-z]+): made by the command -->.*?<!-- end of \1 -->", re.DOTALL)
_LINK = re.compile(r"\]\([^)]*\)")
_UNIT = (
    r"(?:(?:ms|µs|ns|s|h|milliseconds?|seconds?|minutes?|hours?|days?|[kMGT]i?B|bytes?|times|percent|thousand|million"
    r"|a second|kills?|rounds?|crashes|runs|tests|items|records?(?:/s)?|messages?|rows?|instructions?|entries)(?!\w)"
    r"|%|/s)"
)
_NEXT = r"(?:(?:–| to | and | or |, )\d[\d.,]*)*"
"""Of `17 to 19 µs` both numbers count."""
_QUANTITY = re.compile(
    rf"(?<![\w.:/-])(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+\.\d+(?!\.?\d)|\d+(?={_NEXT} ?{_UNIT}))(?: ?{_UNIT})?"
)


def quantities_in(text: str) -> list[str]:
    """Every quantity that is neither made from a result nor marked with one, as it is written."""
    bare = _LINK.sub("]", without_marks(_MADE.sub("", without_outputs(text))))
    return [" ".join(found.split()) for found in _QUANTITY.findall(bare)]


def listed() -> dict[str, Counter[str]]:
    """What is written down, page by page, from all of the list's sections."""
    pages: dict[str, Counter[str]] = {}
    for section in tomllib.loads(LIST.read_text(encoding="utf-8")).values():
        for page, quantities in section.items():
            pages.setdefault(page, Counter()).update(quantities)
    return pages


def is_looked_at(page: str, known: Mapping[str, Counter[str]]) -> bool:
    """Every page; of decision records those that state what was measured. The others state what was decided."""
    return page in known or not page.startswith("docs/decisions/")


def find_faults(page: str, text: str, known: Mapping[str, Counter[str]]) -> list[str]:
    """Quantities of a page that are not written down, and those written down that it does not state."""
    if not is_looked_at(page, known):
        return []
    stated, expected = Counter(quantities_in(text)), known.get(page, Counter())
    return [
        *(f"{page} states {one}, which is in no list" for one in (stated - expected).elements()),
        *(f"{page} is listed with {one}, and does not state it" for one in (expected - stated).elements()),
    ]
