"""What the durability drill found, as a screen of text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from zerotail.cli.output import tick

if TYPE_CHECKING:
    from zerotail.drill.durability.result import DurabilityResult

_COLUMN = 12


def told_durability(found: DurabilityResult) -> str:
    """A line for each combination of settings, a column for each fault: acknowledged records that are gone."""
    from zerotail.drill.durability.picture import label

    faults = [one.name for one in found.faults]
    fields = {(one.cell, one.fault): one for one in found.cells}
    cells = dict.fromkeys(one.cell for one in found.cells)
    lines = [f"{tick(found.verdict == 'passed', sys.stdout)} {found.verdict.upper()}: {'; '.join(found.reasons)}"]
    lines += [f"  {number} {one.summary} ({one.rounds} rounds)" for number, one in enumerate(found.faults, 1)]
    lines.append(f"{'acknowledged records lost':<42}" + "".join(f"{n:>{_COLUMN}}" for n in range(1, len(faults) + 1)))
    for cell in cells:
        row = [fields[cell, fault] for fault in faults]
        shown = [f"{one.lost:,}{'!' if one.promised and one.lost else ''}" for one in row]
        lines.append(f"{label(row[0]):<42}" + "".join(f"{text:>{_COLUMN}}" for text in shown))
    wanted = ", ".join(f"{tick(value, sys.stdout)} {name}" for name, value in found.reached.items())
    lines.append(f"{found.kills} kills of a leader in {found.seconds:,.0f} s; {wanted}")
    return "\n".join(lines)
