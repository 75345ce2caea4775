"""`zerotail drill run acks`: the durability drill in the form of every other drill.

The counts are those of the cells in which nothing may be lost; what weaker settings lose is in the report.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import msgspec

from zerotail.drill.durability.judgement import spared
from zerotail.drill.durability.picture import draw, label
from zerotail.drill.durability.result import DurabilityResult
from zerotail.drill.result import DrillResult, FaultTold, write_result
from zerotail.private import make_folder, write_file

SUMMARY = "Kafka alone, three brokers: what acks, min.insync.replicas and unclean election keep when leaders are lost"
ALLOWED = "nothing may be lost in the fields with a green border"
_STYLE = (
    "body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em } "
    "td, th { text-align: right; padding: .15em .8em } td:first-child, th:first-child { text-align: left }"
)


def leave_files(found: DurabilityResult, seed: int, files: Path) -> DrillResult:
    """Write `durability.json`, `result.json` and `report.html`; answers the drill's result."""
    make_folder(files)
    report = files / "report.html"
    result = as_drill(found, seed, str(files), str(report))
    write_file(files / "durability.json", msgspec.json.encode(found))
    write_result(files / "result.json", "drill-run", result)
    write_file(report, _page(found))
    return result


def as_drill(found: DurabilityResult, seed: int, history: str, report: str) -> DrillResult:
    """The same in the words of a drill."""
    promised = [one for one in found.cells if one.promised and not spared(one)]
    return DrillResult(
        scenario="acks",
        seed=seed,
        verdict=found.verdict,
        lost=sum(one.lost for one in promised),
        duplicated=sum(one.repeated for one in found.cells if one.idempotent),
        reordered=0,
        in_doubt=sum(one.written - one.acknowledged for one in promised),
        submitted=sum(one.acknowledged for one in promised),
        received=sum(one.found for one in promised),
        detect_seconds=None,
        promote_seconds=None,
        takeover_seconds=None,
        outage_seconds=None,
        faults=tuple(FaultTold(one.name, one.bit == one.rounds, one.evidence) for one in found.faults),
        history=history,
        report=report,
        receiver="",
        rate=found.rate,
        seconds=found.seconds,
        allowed=ALLOWED,
        reasons=found.reasons,
    )


def _page(found: DurabilityResult) -> str:
    rows = "".join(
        f"<tr><td>{escape(label(one))}</td><td>{escape(one.fault)}</td><td>{one.acknowledged:,}</td>"
        f"<td>{one.lost:,}</td><td>{one.repeated:,}</td></tr>"
        for one in found.cells
    )
    faults = "".join(f"<li>{escape(one.name)}: {escape('; '.join(one.evidence))}</li>" for one in found.faults)
    head = "<tr><th>settings</th><th>fault</th><th>acknowledged</th><th>lost</th><th>repeated</th></tr>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Drill acks</title>'
        f"<style>{_STYLE}</style></head><body><h1>What an acknowledgement is worth</h1>"
        f"<p><b>{found.verdict.upper()}</b>: {escape('; '.join(found.reasons))}</p>{draw(found)}"
        f"<h2>Did the faults bite?</h2><ul>{faults}</ul><h2>All figures</h2><table>{head}{rows}</table></body></html>\n"
    )
