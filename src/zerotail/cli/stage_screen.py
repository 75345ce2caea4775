"""A drill on a terminal: the story scrolls, and below it stands what is going on now. Elsewhere the story alone.

The counters are the outside's own: what the business was told is safe, and what the receiver has accepted. Whether the
active site is exposed is what its own database says.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from threading import Event, Thread
from typing import TYPE_CHECKING

from zerotail.cli.output import console, say
from zerotail.cli.progress import redraws
from zerotail.errors import ZerotailError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import RenderableType
    from rich.live import Live

    from zerotail.drill.rehearsal import Rehearsal

_LOOK_SECONDS = 0.25
_EXPOSED_SECONDS, _ANSWER_SECONDS = 1.0, 1.0
EXPOSED = "EXPOSED: no second copy"
_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 40


class StageScreen:
    """What `tell` and `watch` show; `live` is None where lines once shown cannot be changed."""

    def __init__(self, live: Live | None) -> None:
        self._live = live
        self._began = time.monotonic()

    def tell(self, line: str) -> None:
        """One line of the story."""
        timed = f"{time.monotonic() - self._began:6.1f} s  {line}"
        if self._live is None:
            say(timed)
        else:
            self._live.console.print(timed, markup=False, overflow="ellipsis", no_wrap=True)

    def watch(self, rehearsal: Rehearsal) -> AbstractContextManager[None]:
        """Show the counters of a stage for the length of a block."""
        return nullcontext() if self._live is None else _watching(self._live.update, rehearsal)


@contextmanager
def stage_screen() -> Iterator[StageScreen]:
    """A screen for the length of a block; only the story stays."""
    if not redraws(sys.stderr):
        yield StageScreen(None)
        return
    from rich.live import Live

    with Live(console=console(sys.stderr), transient=True, refresh_per_second=4) as live:
        yield StageScreen(live)


@contextmanager
def _watching(show: Callable[[RenderableType], None], rehearsal: Rehearsal) -> Iterator[None]:
    stop = Event()
    thread = Thread(target=_watch, args=(show, rehearsal, stop), name="stage screen", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(show: Callable[[RenderableType], None], rehearsal: Rehearsal, stop: Event) -> None:
    arrived: deque[tuple[float, int]] = deque(maxlen=_COLUMNS + 1)
    exposed, asked_at = False, 0.0
    while not stop.wait(_LOOK_SECONDS):
        # A receiver that does not answer now is asked again in a moment.
        with suppress(ZerotailError, OSError):
            if time.monotonic() - asked_at > _EXPOSED_SECONDS:
                exposed, asked_at = _is_exposed(rehearsal), time.monotonic()
            arrived.append((time.monotonic(), rehearsal.accepted()))
            show(drawn(rehearsal, list(arrived), exposed=exposed))


def _is_exposed(rehearsal: Rehearsal) -> bool:
    """What the database of the active site says; one that does not answer says nothing."""
    from zerotail.postgres.lineage import is_exposed
    from zerotail.postgres.transaction import Session

    database = Session(rehearsal.database, patience_seconds=_ANSWER_SECONDS, connect_seconds=_ANSWER_SECONDS)
    try:
        return database.read(is_exposed) is True
    finally:
        database.close()


def drawn(rehearsal: Rehearsal, arrived: list[tuple[float, int]], *, exposed: bool) -> RenderableType:
    """The panel below the story."""
    from rich.panel import Panel
    from rich.table import Table

    rates = rates_of(arrived)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(
        "active", f"[bold green]{rehearsal.active}[/]", "acknowledged", f"{rehearsal.business.acknowledged:>9,}"
    )
    standby = f"[bold red]{EXPOSED}[/]" if exposed else rehearsal.standby
    grid.add_row("standby", standby, "outside", f"{arrived[-1][1]:>9,}")
    grid.add_row("", "", "arriving", f"{rates[-1] if rates else 0:>7,.0f}/s  [cyan]{sparkline(rates)}[/]")
    return Panel(grid, expand=False, border_style="dim")


def rates_of(arrived: list[tuple[float, int]]) -> list[float]:
    """Messages a second between one look and the next."""
    return [(after - before) / (then - at) for (at, before), (then, after) in pairwise(arrived) if then > at]


def sparkline(rates: list[float]) -> str:
    """One sign for each, as high as it is beside the highest; nothing at all is a blank."""
    highest = max(rates, default=0.0)
    if highest <= 0:
        return _BARS[0] * len(rates)
    # Whatever arrived is seen, however little it was.
    heights = [min(len(_BARS) - 1, int(rate / highest * (len(_BARS) - 2)) + 1) if rate > 0 else 0 for rate in rates]
    return "".join(_BARS[height] for height in heights)
