"""The user's own code: handlers and transforms, found beside the configuration file or wherever Python finds them."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from zerotail.errors import Misused


def find_code_beside(file: str | Path) -> None:
    """Let the code beside a configuration file be imported, here and in Spark's workers."""
    folder = str(Path(file).resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, known)])


def load_object(path: str, whose: str) -> Any:
    """The Python object `module:name`."""
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except Exception as error:
        raise Misused(
            f"{path} of {whose} cannot be loaded: {type(error).__name__}: {error}.",
            code="ZT116",
            tries=["put the module beside the configuration file, or on PYTHONPATH"],
        ) from error
    return found
