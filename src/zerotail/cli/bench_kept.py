"""Results of benchmarks that are kept in a file: what is measured later joins them, and a page shows them again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import click

T = TypeVar("T")
_OPTIONS = (
    click.option("--page", type=click.Path(dir_okay=False), help="Write the tables and the picture into this page."),
    click.option("--result", type=click.Path(dir_okay=False), help="Keep the result here as JSON."),
    click.option("--keep", is_flag=True, help="What is in --result and is not measured now stays in it."),
    click.option(
        "--from", "earlier", type=click.Path(exists=True, dir_okay=False), help="Show a kept result; measure none."
    ),
)


def kept_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command whose result is kept."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """Where a result of one kind is kept."""

    kind: type[T]
    result: str | None
    keep: bool
    earlier: str | None

    def shown(self) -> T | None:
        """The result that is to be shown instead of measuring one."""
        return None if self.earlier is None else self._read(self.earlier)

    def before(self) -> T | None:
        """What a new measurement joins."""
        if not self.keep or self.result is None or not Path(self.result).exists():
            return None
        return self._read(self.result)

    def save(self, found: T) -> None:
        """Keep what is known so far."""
        import msgspec

        if self.result is not None:
            Path(self.result).write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")

    def _read(self, path: str) -> T:
        import msgspec

        from zerotail.errors import Misused

        try:
            return msgspec.json.decode(Path(path).read_bytes(), type=self.kind)
        except (OSError, msgspec.MsgspecError) as error:
            raise Misused(f"{path} holds no result of this benchmark: {error}.", code="ZT118") from error
