"""The results that pages show: what each is, where it is stored, and what puts it into its page.

`bench/results/NAME.json` is shown by one section of one page, or by a page of its own. A section whose result is not
there says so, and shows nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zerotail.bench import checks_page, flow_page, journal_page, mirror_page, restore_page, takeover_page
from zerotail.bench.page import put_section
from zerotail.bench.restore_result import RestoreBench
from zerotail.bench.result import ChecksCost, FlowBench, JournalCost, MirrorResult, TakeoverResult
from zerotail.bench.stored import Stored, read_stored
from zerotail.drill.durability.manual import write_page as write_durability_page
from zerotail.drill.durability.result import DurabilityResult


@dataclass(frozen=True, slots=True)
class Published:
    """One of them."""

    name: str
    """Of the command behind `zerotail bench`, and of the file."""
    kind: type
    write: Callable[[Stored[Any], Path], None]
    heading: str
    """Of its section."""
    page: str = "docs/benchmarks.md"

    def result_in(self, root: Path) -> Path:
        """Where the result is stored."""
        return root / "bench" / "results" / f"{self.name}.json"

    def read(self, root: Path) -> Stored[Any] | None:
        """What is stored, if anything is."""
        file = self.result_in(root)
        return read_stored(file, self.kind) if file.exists() else None

    def write_page(self, stored: Stored[Any] | None, page: Path) -> None:
        """Put it into a page, or say there that it was not measured yet."""
        if stored is None:
            text = f"## {self.heading}\n\nNot measured yet: `zerotail bench {self.name}` would.\n"
            put_section(page, f"bench {self.name}", text)
        else:
            self.write(stored, page)


PUBLISHED = {
    one.name: one
    for one in (
        Published("flow", FlowBench, flow_page.write_page, "Flow"),
        Published("checks", ChecksCost, checks_page.write_page, "Checks on the way"),
        Published("takeover", TakeoverResult, takeover_page.write_page, "Takeover"),
        Published("restore", RestoreBench, restore_page.write_page, "Restoring order"),
        Published("mirror", MirrorResult, mirror_page.write_page, "Mirror"),
        Published("journal", JournalCost, journal_page.write_page, "Journal"),
        Published(
            "durability",
            DurabilityResult,
            write_durability_page,
            "What an acknowledgement is worth",
            "docs/durability.md",
        ),
    )
}
