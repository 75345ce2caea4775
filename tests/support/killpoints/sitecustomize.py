"""Lets a process of a running system kill itself at a named point, or rest there, once, when a test asks for it.

Python imports this module at the start of every interpreter whose path has this folder: drivers, Spark's workers,
emitters. A test arms a point by making a file of its name in the folder ZT_KILL_POINTS; whoever reaches the point first
takes the file away and is gone. A point `POINT.rest` is armed in the same way: whoever reaches it stays there until the
file that it left, `POINT.rest.PID.done`, has been taken away.

The point `in-commit-of-EFFECT` lies inside the COMMIT of the transaction that carries out this effect and no other. The
server is asked to take its time with it, and whoever has its answer already lives on, to try with the next one. Who
died there leaves in the file what `support/backend_log.py` needs to find the COMMIT in the server's own log.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_LOOK_SECONDS = 0.05
_SLOW_COMMIT = b"set local commit_delay = 100000; set local commit_siblings = 0"
"""Microseconds between the commit's record and its way to the disk."""
_INSIDE_SECONDS = 0.02
FOLDER = os.environ.get("ZT_KILL_POINTS", "")
carried = threading.local()
"""`effect`: the name of what this thread carries out."""


def reach(point: str, note: dict[str, Any] | None = None) -> None:
    """Die here if the point is armed, and leave a note; or rest here."""
    resting = _take(f"{point}.rest")
    while resting is not None and resting.exists():
        time.sleep(_LOOK_SECONDS)
    taken = _take(point)
    if taken is not None:
        if note is not None:
            command = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode()
            taken.write_text(json.dumps({"pid": os.getpid(), "command": command, "at": time.time(), **note}))
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
        carried.effect = type(effect).__name__
        try:
            answer = original(self, effect)
        finally:
            carried.effect = ""
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
    """The points at which the server is at a COMMIT, and nobody has heard of it."""
    original = module.Connection.execute

    def execute(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        effect = getattr(carried, "effect", "")
        point = f"in-commit-of-{effect}"
        commits = isinstance(query, bytes) and query.startswith(b"commit")
        if not effect or not commits or not (Path(FOLDER) / point).exists():
            return original(self, query, *arguments, **options)
        original(self, _SLOW_COMMIT)
        note = {"effect": effect, "backend": self.pgconn.backend_pid}
        return _dying(point, note, lambda: original(self, query, *arguments, **options))

    module.Connection.execute = execute


def _dying(point: str, note: dict[str, Any], call: Callable[[], Any]) -> Any:
    """The call's answer, unless it takes long enough to die meanwhile."""
    answered = threading.Event()

    def die() -> None:
        if not answered.wait(_INSIDE_SECONDS):
            reach(point, note)

    killer = threading.Thread(target=die)
    killer.start()
    try:
        return call()
    finally:
        answered.set()
        killer.join()


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
