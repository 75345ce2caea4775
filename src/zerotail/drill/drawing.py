"""The pictures of a drill's report, as plain SVG: readable on paper, without a script, without anything outside.

received    messages per 100 ms, by the site that sent them, with the faults and acts above
steps       a bar for each step of one act, each act at a scale of its own
order       which producer's records stand in which order around the break, and where one site ended and the other
            went on
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

WIDTH = 960
_HEIGHT, _TOP, _FOOT = 190, 34, 22
_ROW, _LABEL = 22, 190
STEP_SECONDS = 0.1
_NEAR = 150
"""So many messages are shown on either side of the break."""
SITE_COLOURS = {"east": "#316dca", "west": "#d9822b"}
PRODUCER_COLOURS = ("#3f7f5f", "#a15c9c", "#8a7a2f", "#4a6a8a")
_FAULT, _ACT, _QUIET = "#cf222e", "#24292f", "#57606a"


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment to be shown: a fault or an act."""

    at: float
    is_fault: bool
    what: str


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasted."""

    name: str
    began_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Message:
    """One accepted message: when, from where, whose record."""

    at: float
    site: str
    partition: int
    number: int
    producer: int


@dataclass(frozen=True, slots=True)
class Break:
    """Messages of one partition around a change of the sending site, in the order of their numbers."""

    near: Sequence[Message]
    place: int | None
    """The first of them that the other site sent; None where one site sent all."""

    @property
    def runs(self) -> list[tuple[str, int, int]]:
        """Which site sent how many in a row, of which producer's records."""
        rows = groupby(self.near, lambda one: (one.site, one.producer))
        return [(site, producer, len(list(run))) for (site, producer), run in rows]


def draw_received(messages: Sequence[Message], marks: Sequence[Mark], zero: float) -> str:
    """What the customer saw; seconds count from `zero`."""
    if not messages:
        return "<p>Nothing was received.</p>"
    start = min(one.at for one in messages)
    end = max(one.at for one in messages) + 2 * STEP_SECONDS
    scale = WIDTH / (end - start)
    counts = per_step(messages, start)
    sums: Counter[int] = Counter()
    for (_, place), count in counts.items():
        sums[place] += count
    most = max(sums.values())
    tall = _HEIGHT - _TOP - _FOOT
    below: Counter[int] = Counter()
    parts = []
    for (site, place), count in sorted(counts.items()):
        high = count / most * tall
        bottom = below[place] / most * tall
        below[place] += count
        left, top = place * STEP_SECONDS * scale, _HEIGHT - _FOOT - bottom - high
        parts.append(_rect(left, top, max(0.6, STEP_SECONDS * scale - 0.3), high, SITE_COLOURS.get(site, _QUIET)))
    shown = [mark for mark in marks if start <= mark.at <= end]
    parts += [_mark((mark.at - start) * scale, mark, number) for number, mark in enumerate(shown, start=1)]
    parts += _seconds(start, end, scale, zero)
    parts.append(_text(WIDTH - 4, _TOP - 6, f"highest bar: {most:,} messages", anchor="end", colour=_QUIET))
    return _svg(_HEIGHT, parts) + _legend(shown, zero)


def per_step(messages: Sequence[Message], start: float) -> Counter[tuple[str, int]]:
    """How many messages of each site arrived in each tenth of a second since `start`."""
    return Counter((one.site, int((one.at - start) / STEP_SECONDS)) for one in messages)


def _legend(marks: Sequence[Mark], zero: float) -> str:
    """What the numbers above the lines mean, so that it can be read on paper."""
    lines = (f"<li>{mark.at - zero:+.2f} s: {escape(mark.what.split(':')[0])}</li>" for mark in marks)
    return f'<ol class="marks">{"".join(lines)}</ol>'


def draw_steps(bars: Sequence[Bar], zero: float, origin: str = "the first fault") -> str:
    """A Gantt chart of one act; seconds count from `zero`, which is called `origin`."""
    start, end = min(bar.began_at for bar in bars), max(bar.ended_at for bar in bars)
    room = WIDTH - _LABEL - 80
    scale = room / max(0.001, end - start)
    parts = []
    for row, bar in enumerate(bars):
        top = row * _ROW + 4
        left, wide = _LABEL + (bar.began_at - start) * scale, max(2.0, (bar.ended_at - bar.began_at) * scale)
        parts.append(_text(_LABEL - 8, top + 12, bar.name, anchor="end"))
        parts.append(_rect(left, top, wide, _ROW - 7, "#6e7781"))
        parts.append(_text(left + wide + 5, top + 12, _duration(bar.ended_at - bar.began_at), colour=_QUIET))
    high = len(bars) * _ROW + 24
    told = f"from {start - zero:+.2f} s to {end - zero:+.2f} s, counted from {origin}"
    parts.append(_text(_LABEL, high - 6, told, colour=_QUIET))
    return _svg(high, parts)


def draw_order(messages: Sequence[Message], names: dict[int, str]) -> str:
    """For each partition and change of the sending site, the messages around it."""
    colours = {producer: PRODUCER_COLOURS[place % 4] for place, producer in enumerate(sorted(names))}
    strips = [_strip(one, colours) for one in breaks_in(messages)]
    legend = " ".join(
        f'<span class="key"><i style="background:{colours[number]}"></i>{escape(name)}</span>'
        for number, name in sorted(names.items())
    )
    return f"<p>{legend}</p>{''.join(strips)}"


def breaks_in(messages: Sequence[Message]) -> list[Break]:
    """By partition, then by number; of a partition that one site alone has sent to, the last messages."""
    found = []
    for _, own in groupby(sorted(messages, key=lambda one: (one.partition, one.number)), lambda one: one.partition):
        tail = list(own)
        changes = [place for place in range(1, len(tail)) if tail[place].site != tail[place - 1].site]
        for middle in changes or [len(tail)]:
            first = max(0, middle - _NEAR)
            found.append(Break(tail[first : middle + _NEAR], middle - first if changes else None))
    return found


def _strip(shown: Break, colours: dict[int, str]) -> str:
    near, place = shown.near, shown.place
    wide = (WIDTH - 90) / (2 * _NEAR)
    parts = [_text(0, 34, f"partition {near[0].partition}")]
    left = 90.0
    for site, producer, count in shown.runs:
        parts.append(_rect(left, 20, max(0.5, count * wide - 0.2), 20, colours.get(producer, _QUIET)))
        parts.append(_rect(left, 42, count * wide, 4, SITE_COLOURS.get(site, _QUIET)))
        left += count * wide
    if place is not None:
        at = 90 + place * wide
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="14" y2="52" stroke="{_FAULT}" stroke-width="1.5"/>')
        before, after = near[place - 1], near[place]
        parts.append(_text(at - 4, 12, f"{before.site}: … {before.number:,}", anchor="end", colour=_QUIET))
        parts.append(_text(at + 4, 12, f"{after.site}: {after.number:,} …", colour=_QUIET))
    else:
        parts.append(_text(90, 12, f"the last {len(near)} up to {near[-1].number:,}, all from one site", colour=_QUIET))
    return _svg(56, parts)


def _seconds(start: float, end: float, scale: float, zero: float) -> list[str]:
    """The axis: a tick each second, a figure at every fifth."""
    parts = []
    for second in range(int(start - zero) - 1, int(end - zero) + 2):
        left = (zero + second - start) * scale
        if 0 <= left <= WIDTH:
            high = 6 if second % 5 == 0 else 3
            base = _HEIGHT - _FOOT
            parts.append(f'<line x1="{left:.1f}" x2="{left:.1f}" y1="{base}" y2="{base + high}" stroke="{_QUIET}"/>')
            if second % 5 == 0 and 16 < left < WIDTH - 16:
                parts.append(_text(left, _HEIGHT - 4, f"{second} s", anchor="middle", colour=_QUIET))
    return parts


def _mark(left: float, mark: Mark, number: int) -> str:
    colour = _FAULT if mark.is_fault else _ACT
    dashes = "" if mark.is_fault else ' stroke-dasharray="3 3"'
    lines = f'x1="{left:.1f}" x2="{left:.1f}" y1="{_TOP - 14}" y2="{_HEIGHT - _FOOT}"'
    # Marks that lie close together take turns in height.
    figure = _text(left + 2, 11 + 11 * ((number - 1) % 2), str(number), colour=colour)
    return f'<line {lines} stroke="{colour}"{dashes}><title>{escape(mark.what)}</title></line>{figure}'


def _rect(left: float, top: float, wide: float, high: float, colour: str) -> str:
    return f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.2f}" height="{high:.2f}" fill="{colour}"/>'


def _text(left: float, top: float, text: str, *, anchor: str = "start", colour: str = _ACT) -> str:
    place = f'x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f'<text {place} font-size="12">{escape(text)}</text>'


def _svg(high: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {high:.0f}" role="img">{"".join(parts)}</svg>'


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
