"""The picture: settings down, faults across, and in each field how many acknowledged records are gone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from zerotail.drill.durability.judgement import spared
from zerotail.drill.durability.result import CellFound, DurabilityResult

_LEFT, _TOP, _WIDE, _HIGH, _GAP = 268, 76, 88, 30, 8
_GREEN, _PALE, _INK, _QUIET = "#aceebb", "#f0f4f1", "#1b1f24", "#57606a"
_REDS = ("#ffd8d3", "#ffb3a8", "#ff8a7a", "#f2604d")
_HEADINGS = {
    "leader-killed": ("leader", "killed"),
    "leader-killed-followers-behind": ("killed,", "followers", "0.5 s behind"),
    "leader-killed-alone": ("killed,", "alone in sync"),
    "both-in-sync-killed": ("both in sync", "killed"),
    "leader-frozen": ("leader", "frozen"),
    "all-killed": ("all three", "killed"),
    "leader-loses-power": ("leader", "loses power"),
    "all-lose-power": ("all three", "lose power"),
}


def draw(result: DurabilityResult) -> str:
    """One SVG without references to anything outside."""
    faults = [one.name for one in result.faults]
    parts = [_heading(place, fault) for place, fault in enumerate(faults)]
    top = float(_TOP)
    for acks, rows in groupby(_cells_in_order(result.cells), lambda name: name.split("-")[1]):
        for name in rows:
            found = {one.fault: one for one in result.cells if one.cell == name}
            parts.append(_label(top, next(iter(found.values()))))
            parts += [_field(place, top, found[fault]) for place, fault in enumerate(faults)]
            top += _HIGH
        top += _GAP if acks != "all" else 0
    parts.append(_legend(top + 14))
    wide = _LEFT + len(faults) * _WIDE + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {top + 50:.0f}" '
        f'font-family="system-ui, sans-serif" role="img">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _cells_in_order(cells: Sequence[CellFound]) -> list[str]:
    return list(dict.fromkeys(one.cell for one in cells))


def _heading(place: int, fault: str) -> str:
    lines = _HEADINGS.get(fault, (fault,))
    left = _LEFT + place * _WIDE + _WIDE / 2
    first = _TOP - 12 - 14 * (len(lines) - 1)
    return "".join(_text(left, first + 14 * line, words, "middle", 12) for line, words in enumerate(lines))


def _label(top: float, one: CellFound) -> str:
    return _text(_LEFT - 10, top + _HIGH / 2 + 4, label(one), "end", 12)


def label(one: CellFound) -> str:
    """A cell's settings in a few words."""
    words = [f"acks={one.acks}", f"min ISR {one.min_insync}", "unclean" if one.unclean else "clean"]
    extra = "flush each" if one.flushed else "idempotent" if one.idempotent else ""
    return ", ".join([*words, extra] if extra else words)


def _field(place: int, top: float, one: CellFound) -> str:
    left = _LEFT + place * _WIDE
    fill = _shade(one)
    border = ' stroke="#1a7f37" stroke-width="1.5"' if _promised(one) else ""
    told = f"{one.lost:,} of {one.acknowledged:,} acknowledged are gone; {one.repeated:,} repeated"
    box = f'x="{left + 2}" y="{top + 2:.0f}" width="{_WIDE - 4}" height="{_HIGH - 4}" rx="3"'
    figure = _text(left + _WIDE / 2, top + _HIGH / 2 + 4, f"{one.lost:,}", "middle", 12)
    return f'<g><title>{escape(told)}</title><rect {box} fill="{fill}"{border}/>{figure}</g>'


def _promised(one: CellFound) -> bool:
    return one.promised and not spared(one)


def _shade(one: CellFound) -> str:
    if not one.lost:
        return _GREEN if _promised(one) else _PALE
    share = one.lost / max(1, one.acknowledged)
    return _REDS[sum(share > limit for limit in (0.001, 0.01, 0.1))]


def _legend(top: float) -> str:
    keys = [(_GREEN, "0, promised"), (_PALE, "0, proves nothing"), (_REDS[0], "lost, to 0.1 %")]
    keys += [(_REDS[1], "to 1 %"), (_REDS[2], "to 10 %"), (_REDS[3], "more")]
    parts, left = [], 12.0
    for colour, words in keys:
        parts.append(f'<rect x="{left:.0f}" y="{top:.0f}" width="14" height="14" rx="2" fill="{colour}"/>')
        parts.append(_text(left + 19, top + 11, words, "start", 12))
        left += 38 + 6.7 * len(words)
    return "".join(parts)


def _text(left: float, top: float, words: str, anchor: str, size: int) -> str:
    colour = _QUIET if anchor == "start" else _INK
    place = f'x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"'
    return f"<text {place}>{escape(words)}</text>"
