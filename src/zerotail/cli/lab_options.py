"""What the commands of `zerotail lab` have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

DEFAULT_FOLDER = ".zerotail/lab"


def dir_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--dir`, as an absolute path: processes are found again by it."""
    return click.option(
        "--dir",
        "folder",
        default=DEFAULT_FOLDER,
        show_default=True,
        envvar="ZEROTAIL_LAB_DIR",
        metavar="D",
        callback=lambda _context, _parameter, value: Path(value).resolve(),
        help="The lab's folder.",
    )(function)


def bindir_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--bindir`, as an absolute path: later commands are called from other folders."""
    return click.option(
        "--bindir",
        metavar="FOLDER",
        callback=lambda _context, _parameter, value: value and str(Path(value).absolute()),
        help="PostgreSQL's programs, e.g. Debian's; those of the lab extra if not given.",
    )(function)
