"""The plan of the mirrors as a picture: clusters as boxes, flows as arrows; plain SVG, nothing from outside."""

from __future__ import annotations

from html import escape

from zerotail.core.topology import Flow
from zerotail.mirror.planning import MirrorPlan, PlannedMirror

_WIDTH, _BOX_WIDTH, _BOX_HEIGHT = 760, 150, 44
_LEFT, _RIGHT = 40, _WIDTH - 40 - _BOX_WIDTH
_HEAD, _GAP, _LINE = 46, 26, 16
_INK, _QUIET, _FLOW, _BAD = "#24292f", "#57606a", "#316dca", "#cf222e"


def draw(plan: MirrorPlan) -> str:
    """One drawing with all mirrors below each other."""
    parts: list[str] = []
    top = 10
    for mirror in plan.mirrors:
        drawn, height = _mirror(mirror, top)
        parts += drawn
        top += height
    for principle in plan.principles:
        sign, colour = ("✓", _INK) if principle.holds else ("✗", _BAD)
        parts.append(_text(20, top + _LINE, f"{sign} {principle.name}", colour))
        top += _LINE + 4
        for objection in principle.objections:
            parts.append(_text(36, top + _LINE, objection, _BAD))
            top += _LINE + 4
    arrow = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{_FLOW}"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top + 20}" font-family="sans-serif" '
        f'font-size="13"><defs>{arrow}</defs><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _mirror(mirror: PlannedMirror, top: int) -> tuple[list[str], int]:
    drawn = [_text(20, top + 18, f"{mirror.name} · {mirror.topology} · engine {mirror.engine}", _INK, weight="bold")]
    if not mirror.flows:
        (cluster,) = mirror.source
        drawn += _box(_LEFT, top + _HEAD, cluster, width=_WIDTH - 80)
        drawn.append(_text(_LEFT + 12, top + _HEAD + 36, "one cluster over several sites, by rack", _QUIET))
        return drawn, _HEAD + _BOX_HEIGHT + _GAP
    lefts = list(dict.fromkeys(flow.flow.source for flow in mirror.flows))
    rights = list(dict.fromkeys(flow.flow.target for flow in mirror.flows))
    if mirror.topology == "active-active":
        lefts, rights = lefts[:1], rights[:1]
    rows = max(len(lefts), len(rights))
    places = {name: (_LEFT, top + _HEAD + _middle(n, len(lefts), rows)) for n, name in enumerate(lefts)}
    places |= {name: (_RIGHT, top + _HEAD + _middle(n, len(rights), rows)) for n, name in enumerate(rights)}
    for name, (x, y) in places.items():
        drawn += _box(x, y, name)
    for number, planned in enumerate(mirror.flows):
        drawn += _arrow(planned.flow, places, 8 * (2 * number - 1) if mirror.topology == "active-active" else 0)
    return drawn, _HEAD + rows * (_BOX_HEIGHT + _GAP)


def _middle(number: int, count: int, rows: int) -> int:
    """Where the box of this number stands when `count` of them share the height of `rows`."""
    pitch = _BOX_HEIGHT + _GAP
    return int(number * pitch + (rows - count) * pitch / 2)


def _box(x: int, y: int, name: str, width: int = _BOX_WIDTH) -> list[str]:
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{_BOX_HEIGHT}" rx="6" fill="#f6f8fa" stroke="{_INK}"/>'
    return [shape, _text(x + 12, y + 20, name, _INK, weight="bold")]


def _arrow(flow: Flow, places: dict[str, tuple[int, int]], shift: int) -> list[str]:
    (from_x, from_y), (to_x, to_y) = places[flow.source], places[flow.target]
    leftward = from_x > to_x
    begin = from_x if leftward else from_x + _BOX_WIDTH
    end = to_x + _BOX_WIDTH + 2 if leftward else to_x - 2
    y1, y2 = (y + _BOX_HEIGHT // 2 + shift for y in (from_y, to_y))
    names = "" if flow.names == "identity" else f" as {flow.source}.…"
    label = f"{', '.join(flow.patterns)}{names}"
    line = (
        f'<line x1="{begin}" y1="{y1}" x2="{end}" y2="{y2}" stroke="{_FLOW}" stroke-width="2" marker-end="url(#tip)"/>'
    )
    above = (y1 + y2) // 2 + (-6 if shift <= 0 else _LINE)
    return [line, _text((begin + end) // 2, above, label, _QUIET, anchor="middle")]


def _text(x: int, y: int, text: str, colour: str, *, weight: str = "normal", anchor: str = "start") -> str:
    style = f'fill="{colour}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'
