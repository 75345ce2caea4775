"""What a page shows of the output of a command is what the command printed.

A block of code below `<!-- printed: docs/output/demo.txt -->` shows parts of that file, which holds all that a command
printed and begins with a line that names the commit. `…` alone stands for lines that are left out, at the end of a line
for what else the line says; `$ ` begins what is typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"<!-- printed: (?P<file>[\w./-]+) -->\n```\w*\n(?P<lines>.*?)^```", re.MULTILINE | re.DOTALL)
_OF_COMMIT = re.compile(r"# .*\bcommit ([0-9a-f]{40})\b")
_LEFT_OUT = "…"


@dataclass(frozen=True)
class Shown:
    """A block of a page, and the file that it is from."""

    file: str
    lines: tuple[str, ...]


def outputs_in(text: str) -> list[Shown]:
    """Every block that says where it is from."""
    return [Shown(one["file"], tuple(one["lines"].splitlines())) for one in _BLOCK.finditer(text)]


def without_outputs(text: str) -> str:
    """A page without these blocks."""
    return _BLOCK.sub("", text)


def commit_of(printed: str) -> str | None:
    """The commit whose program printed this, by its first line."""
    found = _OF_COMMIT.match(printed)
    return found[1] if found else None


def find_invented(shown: Shown, printed: str) -> list[str]:
    """Lines that the command has not printed, or not in this order."""
    rest = iter(printed.splitlines())
    wanted = [line for line in shown.lines if line.strip() not in ("", _LEFT_OUT)]
    return [line for line in wanted if not any(_is_of(line, one) for one in rest)]


def _is_of(line: str, printed: str) -> bool:
    if line.endswith(_LEFT_OUT):
        return printed.startswith(line.removesuffix(_LEFT_OUT).rstrip())
    return line.rstrip() == printed.rstrip()
