"""The audit as one HTML file without references to anything outside, readable on paper."""

from __future__ import annotations

from datetime import datetime
from html import escape
from pathlib import Path

from zerotail.audit.judgement import Audit, Finding
from zerotail.audit.shown import first_line

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; color: #1b1f24 }
h1 { font-size: 1.5em } h2 { font-size: 1.1em; margin-top: 2em }
.answer { display: inline-block; padding: .3em .8em; border: 2px solid; border-radius: 6px; font-weight: 600 }
.clean { color: #116329 } .findings { color: #a40e26 } .unknown { color: #7d4e00 }
article { border-left: 4px solid #7d4e00; padding: .1em 1em; margin: 1em 0 } article.loss { border-color: #a40e26 }
code { background: #f6f8fa; padding: .3em .5em; display: block; white-space: pre-wrap; overflow-wrap: anywhere }
table { border-collapse: collapse } td, th { text-align: left; padding: .25em 1em .25em 0; vertical-align: top }
"""
_WORDS = {"loss": "loses data", "risk": "weakens"}


def write_page(path: Path, audit: Audit, at: datetime) -> None:
    """Write the report."""
    body = [
        "<h1>No-data-loss audit</h1>",
        f'<p class="answer {audit.answer}">{escape(first_line(audit))}</p>',
        f"<p>Looked at {at.isoformat(timespec='seconds')}.</p>",
        "<h2>Findings</h2>",
        "".join(_finding(finding) for finding in audit.findings) or "<p>None.</p>",
        "<h2>Not known</h2>",
        _table([(one.subject, f"{one.reason} ({', '.join(one.rules)})") for one in audit.unknown]) or "<p>Nothing.</p>",
        "<h2>Passed</h2>",
        _table([(one.rule, f"{one.title} ({one.subjects})") for one in audit.passed]) or "<p>Nothing.</p>",
    ]
    head = f'<meta charset="utf-8"><title>No-data-loss audit</title><style>{_STYLE}</style>'
    page = f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(body)}</body></html>\n"
    path.write_text(page, encoding="utf-8")


def _finding(finding: Finding) -> str:
    rows = [("set", finding.seen), ("why", finding.why), ("default", finding.default)]
    return (
        f'<article class="{finding.weight}"><h3>{escape(finding.rule)}: {escape(finding.subject)}</h3>'
        f"<p>Should hold: {escape(finding.title)}. As it is, it {_WORDS[finding.weight]}.</p>"
        f"{_table(rows)}<p>Repair:</p><code>{escape(finding.repair)}</code></article>"
    )


def _table(rows: list[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{lines}</table>" if lines else ""
