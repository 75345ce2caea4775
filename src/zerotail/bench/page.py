"""Sections of a page that commands make, each in the place of its earlier self, and pictures of bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

_WIDTH, _BAR, _GAP, _LEFT, _RIGHT = 860, 14, 5, 250, 70
_LETTER = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a picture."""

    label: str
    value: float
    colour: str
    note: str = ""
    """Stands behind the value."""


def put_section(page: Path, name: str, section: str, picture: str | None = None) -> None:
    """Put the section of a command into the page, and its picture beside it; whatever else is in the page stays."""
    begin, end = f"<!-- {name}: made by the command -->", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8") if page.exists() else "# Benchmarks\n"
    whole = f"{begin}\n{section}\n{end}"
    if begin in text:
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = before + whole + after
    else:
        text = f"{text.rstrip()}\n\n{whole}\n"
    page.write_text(text, encoding="utf-8")
    if picture is not None:
        (page.parent / picture_name(name)).write_text(picture, encoding="utf-8")


def picture_name(name: str) -> str:
    """The file of a command's picture."""
    return f"{name.replace(' ', '-')}.svg"


def draw_bars(title: str, bars: Sequence[Bar], line_at: float) -> str:
    """Bars below each other, and a line at a value to compare them with."""
    return "\n".join(_svg(title, bars, line_at)) + "\n"


def _svg(title: str, bars: Sequence[Bar], line_at: float) -> Iterator[str]:
    notes = max((len(bar.note) for bar in bars), default=0) * _LETTER
    scale = (_WIDTH - _LEFT - _RIGHT - notes) / max([line_at, *(bar.value for bar in bars)])
    height = 40 + len(bars) * (_BAR + _GAP)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">'
    yield f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
    yield f'<text x="10" y="20" font-size="13" fill="#222">{escape(title)}</text>'
    for place, bar in enumerate(bars):
        y, width = 32 + place * (_BAR + _GAP), bar.value * scale
        said = f"{bar.value:.2f} {bar.note}".rstrip()
        label = escape(bar.label)
        yield f'<text x="{_LEFT - 8}" y="{y + 11}" font-size="10" text-anchor="end" fill="#222">{label}</text>'
        yield f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{bar.colour}"/>'
        yield f'<text x="{_LEFT + width + 5:.1f}" y="{y + 11}" font-size="10" fill="#222">{escape(said)}</text>'
    x = _LEFT + line_at * scale
    yield f'<line x1="{x:.1f}" y1="28" x2="{x:.1f}" y2="{height - 6}" stroke="#b03030" stroke-dasharray="4 3"/>'
    yield "</svg>"
