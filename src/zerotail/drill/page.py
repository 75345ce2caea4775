"""The report of a drill: one HTML file without references to anything outside.

Verdict and figures, what the customer saw (messages received per 100 ms), the time line of what happened, the faults
with their evidence, versions. Drawn as plain SVG, readable on paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from zerotail.drill.arrivals import Arrival
from zerotail.drill.rehearsal import Event
from zerotail.drill.result import DrillResult

_WIDTH, _HEIGHT = 960, 160
_STEP_SECONDS = 0.1
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; color: #1b1f24 }
h1 { font-size: 1.5em } h2 { font-size: 1.1em; margin-top: 2em }
.verdict { display: inline-block; padding: .3em .8em; border: 2px solid; border-radius: 6px; font-weight: 600 }
.passed { color: #116329 } .failed { color: #a40e26 } .undecided { color: #7d4e00 }
table { border-collapse: collapse } td, th { text-align: left; padding: .25em 1em .25em 0; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
tr.fault td { color: #a40e26 } tr.act td { font-weight: 600 } svg { width: 100%; height: auto; background: #f6f8fa }
"""


def write_page(
    path: Path, result: DrillResult, events: Sequence[Event], arrivals: Sequence[Arrival], versions: dict[str, str]
) -> None:
    """Write the report."""
    title = f"Drill {result.scenario}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="verdict {result.verdict}">{result.verdict.upper()}</p>',
        _figures(result),
        "<h2>What the customer saw</h2>",
        f"<p>Messages received per {_STEP_SECONDS * 1000:.0f} ms; red lines are faults, dark ones the acts.</p>",
        _received(events, arrivals),
        "<h2>What happened</h2>",
        _time_line(events),
        "<h2>Did the faults bite?</h2>",
        _faults(result),
        "<h2>What the judge says</h2>",
        "<ul>" + "".join(f"<li>{escape(reason)}</li>" for reason in result.reasons) + "</ul>",
        "<h2>Run on</h2>",
        _table(list(versions.items())),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    path.write_text(f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(body)}</body></html>\n")


def _figures(result: DrillResult) -> str:
    seconds = {
        "fault to command": result.detect_seconds,
        "command to promoted": result.promote_seconds,
        "command to first new message": result.takeover_seconds,
        "fault to first new message": result.outage_seconds,
    }
    rows = [
        ("acknowledged instructions", f"{result.submitted:,}"),
        ("messages received", f"{result.received:,}"),
        ("lost", str(result.lost)),
        ("duplicated", str(result.duplicated)),
        ("reordered", str(result.reordered)),
        ("in doubt", str(result.in_doubt)),
        *((name, "–" if value is None else f"{value:.2f} s") for name, value in seconds.items()),
        ("receiver", result.receiver),
        ("instructions per second", f"{result.rate:,.0f}"),
        ("seed", str(result.seed)),
    ]
    return _table(rows, numbers=True)


def _table(rows: Sequence[tuple[str, str]], *, numbers: bool = False) -> str:
    kind = ' class="number"' if numbers else ""
    lines = (f"<tr><th>{escape(name)}</th><td{kind}>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(lines)}</table>"


def _received(events: Sequence[Event], arrivals: Sequence[Arrival]) -> str:
    if not arrivals:
        return "<p>Nothing was received.</p>"
    start = min(one.arrived_at for one in arrivals) - 1
    end = max(events[-1].at, *(one.arrived_at for one in arrivals))
    counts = Counter(int((one.arrived_at - start) / _STEP_SECONDS) for one in arrivals)
    most, steps = max(counts.values()), max(1, int((end - start) / _STEP_SECONDS) + 1)
    width = _WIDTH / steps
    bars = [
        _bar(place * width, max(width, 0.5), count / most * (_HEIGHT - 20)) for place, count in sorted(counts.items())
    ]
    marks = [
        _mark((event.at - start) / (end - start) * _WIDTH, event)
        for event in events
        if event.kind in ("fault", "act") and event.at > start
    ]
    legend = f'<text x="4" y="14" font-size="12">{most} messages</text>'
    foot = f'<text x="{_WIDTH - 70}" y="14" font-size="12">{end - start:.0f} s</text>'
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(bars)}{"".join(marks)}{legend}{foot}</svg>'


def _bar(left: float, width: float, height: float) -> str:
    place = f'x="{left:.1f}" y="{_HEIGHT - height:.1f}"'
    return f'<rect {place} width="{width:.2f}" height="{height:.1f}" fill="#316dca"/>'


def _mark(left: float, event: Event) -> str:
    colour = "#cf222e" if event.kind == "fault" else "#1b1f24"
    line = f'<line x1="{left:.1f}" x2="{left:.1f}" y1="0" y2="{_HEIGHT}" stroke="{colour}">'
    return f"{line}<title>{escape(event.what)}</title></line>"


def _time_line(events: Sequence[Event]) -> str:
    first = events[0].at
    rows = (
        f'<tr class="{escape(event.kind)}"><td class="number">{event.at - first:.2f} s</td>'
        f"<td>{escape(event.kind)}</td><td>{escape(event.what)}</td></tr>"
        for event in events
    )
    return f"<table>{''.join(rows)}</table>"


def _faults(result: DrillResult) -> str:
    rows = (
        f"<tr><th>{escape(fault.name)}</th><td>{'yes' if fault.bit else 'NO'}</td>"
        f"<td>{escape('; '.join(fault.evidence))}</td></tr>"
        for fault in result.faults
    )
    return f"<table>{''.join(rows)}</table>" if result.faults else "<p>There was none: a planned change of roles.</p>"
