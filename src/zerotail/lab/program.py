"""A server of ours as a process: its settings are a file, an error is one line, its exit code says which kind."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from zerotail.errors import ZerotailError

Settings = TypeVar("Settings")
Serve = Callable[[Settings], Coroutine[Any, Any, None]]


def run_program(
    module: str, description: str | None, read_settings: Callable[[Path], Settings], serve: Serve[Settings]
) -> int:
    """Serve by the settings that the command line names, until `serve` returns; the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration, JSON")
    path = parser.parse_args().config
    try:
        asyncio.run(serve(read_settings(path)))
    except ZerotailError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return error.exit_code
    return 0
