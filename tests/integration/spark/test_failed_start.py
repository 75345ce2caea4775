"""A driver that does not come up leaves no JVM behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.servers

SCRIPT = """
from pathlib import Path
from zerotail.spark.session import start_session

def machines():
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
    return found

try:
    start_session("fails", settings={"spark.driver.bindAddress": "203.0.113.1", "spark.port.maxRetries": "0"})
except Exception as error:
    print(type(error).__name__, machines())
else:
    print("it came up")
"""


def test_a_driver_that_cannot_listen_is_gone_when_that_is_said() -> None:
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert said.stdout.split(maxsplit=1)[1:] == ["[]\n"], said.stdout + said.stderr[-2000:]
