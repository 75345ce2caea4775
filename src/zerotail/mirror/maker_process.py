"""MirrorMaker 2 as a process of ours: started, watched, started again when it dies, ended with us.

Its folder holds the properties (readable by their owner alone: clusters have passwords), the log and the settings of
the agent that tells its metrics. A process that keeps dying is started again a little later each time.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from zerotail.jars import locked_jars, require_jars
from zerotail.lab.broker import ENVIRONMENT, require_java
from zerotail.mirror.maker import render_properties
from zerotail.mirror.maker_metrics import EXPORTER_SETTINGS, read_metrics
from zerotail.private import make_folder, open_file, write_file

_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
_LOOK_SECONDS = 1.0
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_SOUND_SECONDS = 30.0
_END_SECONDS = 15.0
_PR_SET_PDEATHSIG = 1
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
"""
_libc = ctypes.CDLL(None)

Tell = Callable[[str], None]
Heard = Callable[[str, dict[str, float]], None]
"""State and metrics of the process, once a second."""


@dataclass(frozen=True, slots=True)
class MakerFiles:
    """What one process runs with."""

    folder: Path
    target: str
    metrics_port: int

    def write(self, properties: Mapping[str, str]) -> None:
        """Put everything into the folder."""
        make_folder(self.folder)
        file = self.folder / "mm2.properties"
        file.unlink(missing_ok=True)
        write_file(file, render_properties(properties))
        write_file(self.folder / "log4j2.properties", _LOGGING)
        write_file(self.folder / "exporter.yaml", EXPORTER_SETTINGS)

    def command(self) -> list[str]:
        """The words that start it."""
        agent = require_jars("agent") / next(jar.file_name for jar in locked_jars() if jar.folder == "agent")
        return [
            require_java(),
            *("-Xms256m", "-Xmx1g"),
            f"-javaagent:{agent}=127.0.0.1:{self.metrics_port}:exporter.yaml",
            "-Dlog4j2.configurationFile=log4j2.properties",
            *("-cp", f"{require_jars('kafka')}/*", _CLASS, "mm2.properties", "--clusters", self.target),
        ]


class MakerProcess:
    """Keeps one MirrorMaker 2 running until it is stopped."""

    def __init__(self, files: MakerFiles, tell: Tell, heard: Heard = lambda _state, _metrics: None) -> None:
        self._files = files
        self._tell = tell
        self._heard = heard
        self._stop = Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._pause_seconds = _FIRST_PAUSE_SECONDS

    @property
    def pid(self) -> int | None:
        """Of the process, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def stop(self) -> None:
        """Let it end."""
        self._stop.set()

    def run(self) -> int:
        """Keep it running; returns when stopped."""
        try:
            while not self._stop.is_set():
                self._start()
                began = time.monotonic()
                code = self._watch()
                if code is not None:
                    self._pause_after(code, time.monotonic() - began)
            return 0
        finally:
            self._end()

    def _start(self) -> None:
        with open_file(self._files.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._files.command(),
                cwd=self._files.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**ENVIRONMENT},
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one call into libc
            )
        self._tell(f"MirrorMaker 2 for {self._files.target} started, process {self._process.pid}")

    def _watch(self) -> int | None:
        """The exit code when it died by itself; None when it was stopped."""
        assert self._process is not None  # noqa: S101 - started
        while not self._stop.wait(_LOOK_SECONDS):
            code = self._process.poll()
            if code is not None:
                return code
            metrics = read_metrics(self._files.metrics_port)
            self._heard("running" if metrics else "starting", metrics)
        return None

    def _pause_after(self, code: int, ran_seconds: float) -> None:
        if ran_seconds > _SOUND_SECONDS:
            self._pause_seconds = _FIRST_PAUSE_SECONDS
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        last = _last_line(self._files.folder / "log")
        self._tell(f"MirrorMaker 2 {how}; it starts again in {self._pause_seconds:g} s{f': {last}' if last else ''}")
        self._heard("waiting", {})
        self._stop.wait(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)

    def _end(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self._tell(f"MirrorMaker 2 did not end within {_END_SECONDS:g} s and was killed")


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return lines[-1][:200] if lines else ""
