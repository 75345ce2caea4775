"""Results of benchmarks that are kept in a file: what is measured later joins them, and a page shows them again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

if TYPE_CHECKING:
    from zerotail.bench.stored import Stored

T = TypeVar("T")
Save = Callable[[T], None]
_PAGE = click.option("--page", type=click.Path(dir_okay=False), help="Write what was found into this page.")
_RESULT = click.option("--result", type=click.Path(dir_okay=False), help="Keep the result here as JSON, with a stamp.")
_KEEP = click.option("--keep", is_flag=True, help="What is in --result and is not measured now stays in it.")
_FROM = click.option(
    "--from", "earlier", type=click.Path(exists=True, dir_okay=False), help="Show a kept result; measure none."
)


def kept_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command whose result is kept, and may be measured in several runs."""
    return _PAGE(_RESULT(_KEEP(_FROM(command))))


def result_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command whose result is kept, and is always measured as a whole."""
    return _PAGE(_RESULT(_FROM(command)))


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """Where a result of one kind is kept, and where it is shown."""

    kind: type[T]
    result: str | None
    keep: bool
    earlier: str | None
    page: str | None
    write_page: Callable[[Stored[T], Path], None]

    def show_or(self, measure: Callable[[T | None, Save[T]], T]) -> T:
        """The kept result that is asked for, or what `measure` finds: it gets what it joins, and a way to keep what is
        known so far. Either is put into the page.
        """
        from zerotail.bench.stored import read_stored

        stored = read_stored(Path(self.earlier), self.kind) if self.earlier is not None else self._measure(measure)
        if self.page is not None:
            self.write_page(stored, Path(self.page))
        return stored.result

    def _measure(self, measure: Callable[[T | None, Save[T]], T]) -> Stored[T]:
        import sys

        from zerotail.bench.stamp import make_stamp
        from zerotail.bench.stored import Stored, join, read_stored, write_stored

        file = None if self.result is None else Path(self.result)
        before = read_stored(file, self.kind) if self.keep and file is not None and file.exists() else None
        stamps = join(before.stamps if before else (), make_stamp(sys.argv[1:]))

        def save(found: T) -> None:
            if file is not None:
                write_stored(file, Stored(stamps, found))

        found = measure(before.result if before else None, save)
        save(found)
        return Stored(stamps, found)
