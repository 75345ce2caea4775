"""Where a value was written: every value of a configuration can name its place.

The places are a closed union, in the order in which they win: the command line, the environment, the file,
and last what zerotail takes when nobody says anything.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InFile:
    """A place in a file, counted from 1 as editors do."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class InEnvironment:
    """An environment variable."""

    name: str

    def __str__(self) -> str:
        return f"environment {self.name}"


@dataclass(frozen=True, slots=True)
class OnCommandLine:
    """A flag, as it was typed."""

    flag: str

    def __str__(self) -> str:
        return f"flag {self.flag}"


@dataclass(frozen=True, slots=True)
class InProgram:
    """Values handed over by Python code instead of a file."""

    def __str__(self) -> str:
        return "program"


@dataclass(frozen=True, slots=True)
class ByDefault:
    """Nobody said anything."""

    def __str__(self) -> str:
        return "default"


Origin = OnCommandLine | InEnvironment | InFile | InProgram | ByDefault


def reading_order(origin: Origin) -> tuple[int, int, int, str]:
    """A sort key: the file from top to bottom, then the environment, then the command line."""
    match origin:
        case InFile(file, line, column):
            return (0, line, column, file)
        case InProgram() | ByDefault():
            return (1, 0, 0, "")
        case InEnvironment(name):
            return (2, 0, 0, name)
        case OnCommandLine(flag):
            return (3, 0, 0, flag)
