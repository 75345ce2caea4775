"""Lets a process of a running system kill itself at a named point, or rest there, once, when a test asks for it.

Python imports this module at the start of every interpreter whose path has this folder: drivers, Spark's workers,
emitters. A test arms a point by making a file of its name in the folder ZT_KILL_POINTS; whoever reaches the point first
takes the file away and is gone. A point `POINT.rest` is armed in the same way: whoever reaches it stays there until the
file that it left, `POINT.rest.PID.done`, has been taken away.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_LOOK_SECONDS = 0.05
FOLDER = os.environ.get("ZT_KILL_POINTS", "")


def reach(point: str) -> None:
    """Die here if the point is armed, or rest here."""
    resting = _take(f"{point}.rest")
    while resting is not None and resting.exists():
        time.sleep(_LOOK_SECONDS)
    if _take(point) is not None:
        os.kill(os.getpid(), signal.SIGKILL)


def _take(armed: str) -> Path | None:
    """What is left of an armed point by the one who takes it."""
    try:
        return (Path(FOLDER) / armed).rename(Path(FOLDER) / f"{armed}.{os.getpid()}.done")
    except OSError:
        return None


def patch_wiring(module: ModuleType) -> None:
    """The points between two effects of a story."""
    from zerotail import ports
    from zerotail.core.gate import GateAnswer

    original = module.SiteAdapters.carry_out

    def carry_out(self: Any, effect: Any) -> Any:
        if isinstance(effect, ports.Commit):
            reach("before-insert")
        answer = original(self, effect)
        if isinstance(effect, ports.Commit):
            reach("committed")
        if isinstance(effect, ports.AskGate) and isinstance(answer, GateAnswer):
            reach("gated")
        if isinstance(effect, ports.SendEmissions):
            reach("answered")
        if isinstance(effect, ports.RecordAcknowledged):
            reach("recorded")
        return answer

    module.SiteAdapters.carry_out = carry_out


def patch_psycopg(module: ModuleType) -> None:
    """The point at which COMMIT is on its way, and nobody has heard of it."""
    original = module.Connection.execute

    def execute(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(query, bytes) and query.startswith(b"commit") and (Path(FOLDER) / "in-commit").exists():
            self.pgconn.send_query(b"commit")
            self.pgconn.flush()
            reach("in-commit")
        return original(self, query, *arguments, **options)

    module.Connection.execute = execute


def patch_http(module: ModuleType) -> None:
    """The point at which a request is written and its answer not read."""
    original = module.HTTPConnection.getresponse

    def getresponse(self: Any) -> Any:
        reach("sent")
        return original(self)

    module.HTTPConnection.getresponse = getresponse


PATCHES = {"zerotail.wiring": patch_wiring, "psycopg": patch_psycopg, "http.client": patch_http}


class Patching(importlib.abc.Loader):
    """Loads a module as usual, then patches it."""

    def __init__(self, loader: importlib.abc.Loader, name: str) -> None:
        self._loader = loader
        self._name = name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        PATCHES[self._name](module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are patched, through whoever finds them otherwise."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Patching(spec.loader, name)
        return spec


if FOLDER:
    sys.meta_path.insert(0, Finder())
