"""Files and folders for their owner only (E27): histories, notes, tails and spools hold what customers sent.

Whatever exists keeps the rights that somebody gave it; what is made here is 0600 in 0700 folders, whatever the umask.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def open_file(path: Path, mode: str, **options: Any) -> IO[Any]:
    """As the built-in `open`, for a file that is written."""
    return open(path, mode, opener=_open, **options)


def write_file(path: Path, content: str | bytes) -> None:
    """The file has this content."""
    with open_file(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
