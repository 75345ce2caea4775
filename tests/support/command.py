"""The `zerotail` program, called as a person or a script would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import jsonschema

from zerotail.cli.answer_forms import json_schema

PROGRAM = (sys.executable, "-m", "zerotail")


@dataclass(frozen=True)
class Said:
    """What a call printed and how it ended."""

    code: int
    out: str
    err: str

    def answer(self, name: str) -> dict[str, Any]:
        """The JSON answer, after its form was checked."""
        lines = self.out.splitlines()
        assert len(lines) == 1, f"one object was expected: {self.out!r} {self.err!r}"
        content: dict[str, Any] = json.loads(lines[0])
        jsonschema.validate(content, json_schema(name))
        return content


def call(
    *arguments: str, environment: dict[str, str] | None = None, folder: str | None = None, seconds: float = 180
) -> Said:
    """Call the program without a terminal and without an input."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=seconds,
        env={**os.environ, **(environment or {})},
        cwd=folder,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)
