"""The smallest drill: rows are committed behind the gate, a site is destroyed in the middle of it, nothing is missing.

A row counts as **released** when the other site has flushed it; that is when its writer may tell anybody about it.
The writer commits locally, one row after the other, and asks the gate for each. While it is still at work, everything
of east is killed at once and its data removed. West is promoted, and what it holds is compared with what was released:

1. every released row is there, with the same bytes;
2. the rows that are there have no gap;
3. the writer did not go on releasing after the site was gone.

Rows that were committed at east and never released may be there or not. Nobody was told about them.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.lab.database import dsn
from zerotail.lab.fault import destroy_site
from zerotail.lab.layout import Layout
from zerotail.lab.site import other_site, promote_site
from zerotail.postgres.connection import Connection, session
from zerotail.postgres.gate import wait_until_gate_opens, wal_position

_TABLE = "create table if not exists released_row (number bigint primary key, body text not null)"
_PATIENCE_SECONDS = 60.0
_SLOWEST_ROWS_PER_SECOND = 20

Released = dict[int, str]
"""Number and body of every row whose gate has opened."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was released, against what the survivor holds."""

    released: int
    survived: int
    missing: tuple[int, ...]
    different: tuple[int, ...]
    gaps: tuple[int, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing that was released is lost or changed."""
        return self.released > 0 and not (self.missing or self.different or self.gaps)


@dataclass(frozen=True, slots=True)
class DrillReport:
    """The drill, told afterwards."""

    passed: bool
    comparison: Comparison
    released_after: int
    """Rows released after the site was gone: there must be none."""
    committed: int
    """Rows whose local commit returned, released or not."""
    evidence: tuple[str, ...]
    rows_per_second: float
    promotion_seconds: float
    first_write_seconds: float


def compare(released: Mapping[int, str], survived: Mapping[int, str]) -> Comparison:
    """Hold what was released against what is there."""
    highest = max(survived, default=0)
    return Comparison(
        released=len(released),
        survived=len(survived),
        missing=tuple(sorted(number for number in released if number not in survived)),
        different=tuple(sorted(n for n, body in released.items() if n in survived and survived[n] != body)),
        gaps=tuple(number for number in range(1, highest + 1) if number not in survived),
    )


class Writer:
    """Commits numbered rows at a site, one after the other, and notes each when its gate has opened."""

    def __init__(self, layout: Layout, site: str) -> None:
        self.released: Released = {}
        self.committed = 0
        self._primary = dsn(layout.database(site))
        self._standby = dsn(layout.database(other_site(site)), seen_from=site)
        self._thread = Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin."""
        with session(self._primary, Deadline.after(_PATIENCE_SECONDS)) as primary:
            primary.execute(_TABLE)
        self._thread.start()

    def join(self) -> None:
        """Wait until it has ended: it ends by itself when its site is gone."""
        self._thread.join(_PATIENCE_SECONDS)

    def _work(self) -> None:
        deadline = Deadline.after(_PATIENCE_SECONDS)
        try:
            with session(self._primary, deadline) as primary, session(self._standby, deadline) as standby:
                # The gate is asked for every row, so the commit itself need not wait for the other site.
                primary.execute("set synchronous_commit = local")
                while True:
                    self._write(primary, standby, Deadline.after(_PATIENCE_SECONDS))
        except Unavailable:
            return  # its site is gone; what was released before that is what counts

    def _write(self, primary: Connection, standby: Connection, deadline: Deadline) -> None:
        number = self.committed + 1
        body = hashlib.sha256(f"{number} {time.time_ns()}".encode()).hexdigest()
        primary.execute("insert into released_row values (%s, %s)", (number, body))
        self.committed = number
        wait_until_gate_opens(primary, standby, wal_position(primary), deadline)
        self.released[number] = body


def run_drill(layout: Layout, rows: int, tell: Callable[[str, float], None]) -> DrillReport:
    """Release `rows` rows, destroy east under the running writer, promote west, compare.

    `tell` hears the name of the step and how much of it is done, from 0 to 1.
    """
    writer = Writer(layout, "east")
    began = time.monotonic()
    writer.start()

    def enough() -> bool:
        tell("release", min(1.0, len(writer.released) / rows))
        return len(writer.released) >= rows

    patience = Deadline.after(_PATIENCE_SECONDS + rows / _SLOWEST_ROWS_PER_SECOND)
    wait_until(f"{rows} rows are released", enough, patience, every_seconds=0.05)
    rate = len(writer.released) / (time.monotonic() - began)

    tell("destroy", 0.0)
    destroyed_at = time.monotonic()
    fault = destroy_site(layout, "east")
    released_before = len(writer.released)
    writer.join()
    released_after = len(writer.released) - released_before
    tell("destroy", 1.0)

    tell("promote", 0.0)
    ordered_at = time.monotonic()
    promote_site(layout, "west", Deadline.after(_PATIENCE_SECONDS))
    promoted_at = time.monotonic()
    tell("promote", 1.0)

    tell("compare", 0.0)
    with session(dsn(layout.database("west")), Deadline.after(_PATIENCE_SECONDS)) as survivor:
        survived = dict(survivor.execute("select number, body from released_row").fetchall())
        survivor.execute("create table written_after (at timestamptz default now())")
        survivor.execute("insert into written_after default values")
    comparison = compare(writer.released, survived)
    tell("compare", 1.0)
    return DrillReport(
        passed=comparison.passed and fault.bit and released_after == 0,
        comparison=comparison,
        released_after=released_after,
        committed=writer.committed,
        evidence=fault.evidence,
        rows_per_second=rate,
        promotion_seconds=promoted_at - ordered_at,
        first_write_seconds=time.monotonic() - destroyed_at,
    )
