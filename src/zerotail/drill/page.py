"""The report of a drill: one HTML file without references to anything outside, to be handed on as it is.

Verdict and figures first; then what the customer saw, the steps, the order around the break; then everything that
happened, the evidence for each fault, what the judges say, and on what it all ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from zerotail.drill.drawing import SITE_COLOURS, Bar, Mark, draw_order, draw_received, draw_steps
from zerotail.drill.record import Record
from zerotail.drill.rehearsal import Event, TimedStep
from zerotail.drill.result import DrillResult
from zerotail.drill.surroundings import time_of_day
from zerotail.private import write_file

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; color: #1b1f24 }
h1 { font-size: 1.6em; margin-bottom: .2em } h2 { font-size: 1.15em; margin: 2em 0 .4em }
h3 { font-size: 1em; margin: 1em 0 .3em }
.quiet { color: #57606a }
.verdict { display: inline-block; padding: .25em .8em; border: 2px solid; border-radius: 6px; font-weight: 700 }
.passed { color: #116329 } .failed { color: #a40e26 } .undecided { color: #7d4e00 }
.figures { display: flex; flex-wrap: wrap; gap: .6em; margin: 1em 0 }
.figures div { border: 1px solid #d0d7de; border-radius: 6px; padding: .4em .9em; min-width: 6.5em }
.figures b { display: block; font-size: 1.35em; font-variant-numeric: tabular-nums }
.figures span { color: #57606a; font-size: .87em }
table { border-collapse: collapse } td, th { text-align: left; padding: .2em 1em .2em 0; vertical-align: top }
th { font-weight: 600; white-space: nowrap }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
tr.fault td { color: #a40e26 } tr.act td { font-weight: 600 } tr.step td { color: #57606a }
svg { width: 100%; height: auto; background: #f6f8fa; border-radius: 4px; margin-bottom: .4em }
ol.marks { columns: 2; font-size: .87em; color: #57606a; margin-top: .2em }
.key { margin-right: 1.2em; white-space: nowrap }
.key i { display: inline-block; width: .9em; height: .9em; margin-right: .35em; vertical-align: -.08em }
pre { background: #f6f8fa; padding: .8em; overflow-x: auto; font-size: 12.5px; white-space: pre-wrap }
@media print { body { margin: 0; max-width: none } h2 { break-after: avoid } svg, tr { break-inside: avoid } }
"""


def write_page(path: Path, result: DrillResult, record: Record) -> None:
    """Write the report."""
    zero, origin, names = record.zero, record.origin, {number: name for name, number in record.producers.items()}
    title = f"Drill {result.scenario}"
    verdict = path.with_name("verdict.txt")
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p><span class="verdict {result.verdict}">{result.verdict.upper()}</span></p>',
        f'<p class="quiet">From {escape(result.began_at)} to {escape(result.ended_at)}. '
        f"Stated beforehand: {escape(result.allowed)}.</p>",
        _figures(result),
        "<h2>What the customer saw</h2>",
        f"<p>Messages received per 100 ms, from {_sites()}. Red lines are faults, dashed ones acts of an operator.</p>",
        draw_received(record.messages, _marks(record.events), zero),
        "<h2>Steps of the acts</h2>",
        _acts(record.steps, zero, origin),
        "<h2>Order around the break</h2>",
        "<p>Whose records stand behind the messages, in the order of their numbers; below, which site sent them.</p>",
        draw_order(record.messages, names),
        "<h2>Did the faults bite?</h2>",
        _faults(result),
        "<h2>What the judges say</h2>",
        "<ul>" + "".join(f"<li>{escape(reason)}</li>" for reason in result.reasons) + "</ul>",
        f"<pre>{escape(verdict.read_text())}</pre>" if verdict.exists() else "",
        "<h2>What happened</h2>",
        f"<p>Seconds count from {origin}, {escape(time_of_day(zero))}.</p>",
        _time_line(record.events, zero),
        "<h2>Asked for</h2>",
        _table(_settings(result)),
        "<h2>Run on</h2>",
        _table(list(record.ran_on.items())),
        "<h2>Configuration</h2>",
        f"<pre>{escape(record.configuration)}</pre>",
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    write_file(path, f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(sections)}</body></html>\n')


def _acts(steps: Sequence[TimedStep], zero: float, origin: str) -> str:
    """A picture for each act: a takeover of a second cannot be read at the scale of a return that takes a minute."""
    drawn = [
        f"<h3>{escape(act)}</h3>" + draw_steps([Bar(x.step, x.began_at, x.ended_at) for x in own], zero, origin)
        for act, own in groupby(steps, lambda one: one.act)
    ]
    return "".join(drawn) or "<p>No act changed a role.</p>"


def _figures(result: DrillResult) -> str:
    def seconds(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f} s"

    shown = {
        "lost": f"{result.lost:,}",
        "duplicated": f"{result.duplicated:,}",
        "reordered": f"{result.reordered:,}",
        "in doubt": f"{result.in_doubt:,}",
        "acknowledged": f"{result.submitted:,}",
        "received": f"{result.received:,}",
        **_own(result),
        "fault to command": seconds(result.detect_seconds),
        "command to promoted": seconds(result.promote_seconds),
        "command to first new": seconds(result.takeover_seconds),
        "fault to first new": seconds(result.outage_seconds),
    }
    cards = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in shown.items())
    return f'<div class="figures">{cards}</div>'


def _own(result: DrillResult) -> dict[str, str]:
    """In a series the counts are those of the two sites since they were made; the drill has counts of its own."""
    if result.own_received is None or result.own_submitted in (None, result.submitted):
        return {}
    return {"of these in this drill": f"{result.own_submitted:,} / {result.own_received:,}"}


def _settings(result: DrillResult) -> list[tuple[str, str]]:
    return [
        ("scenario", result.scenario),
        ("receiver", result.receiver),
        ("instructions per second", f"{result.rate:,.0f}"),
        ("instructions in all", "as many as it takes" if result.count is None else f"{result.count:,}"),
        ("strategy", result.strategy),
        ("state", "made anew from the journal" if result.rebuild_state else "as the database has it"),
        ("seed", str(result.seed)),
        ("seconds, with what made both sites ready", f"{result.seconds:.1f}"),
        ("history", result.history),
    ]


def _marks(events: Sequence[Event]) -> list[Mark]:
    return [Mark(one.at, one.kind == "fault", one.what) for one in events if one.kind in ("fault", "act")]


def _sites() -> str:
    keys = (
        f'<span class="key"><i style="background:{colour}"></i>{name}</span>' for name, colour in SITE_COLOURS.items()
    )
    return " ".join(keys)


def _table(rows: Sequence[tuple[str, str]]) -> str:
    lines = (f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(lines)}</table>"


def _time_line(events: Sequence[Event], zero: float) -> str:
    rows = (
        f'<tr class="{escape(event.kind)}"><td class="number">{event.at - zero:+.2f} s</td>'
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
    return f"<table>{''.join(rows)}</table>" if result.faults else "<p>There was none.</p>"
