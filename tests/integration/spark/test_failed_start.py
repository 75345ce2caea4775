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

def fail(stage):
    try:
        start_session("fails", settings={"spark.driver.bindAddress": "203.0.113.1", "spark.port.maxRetries": "0"})
    except Exception as error:
        print(stage, machines())
    else:
        print("it came up")

fail("context")
"""
AGAIN_AND_AGAIN = """
import pyspark.java_gateway

def declined(_stream):
    raise OSError(22, "Invalid argument")

pyspark.java_gateway.read_int = declined
fail("gateway")
fail("gateway")
"""


def test_a_driver_that_cannot_listen_is_gone_when_that_is_said() -> None:
    assert said_by(SCRIPT) == "context []\n"


def test_one_whose_start_is_declined_in_the_middle_leaves_nothing_however_often_it_is_tried() -> None:
    said = said_by(SCRIPT.replace('fail("context")', AGAIN_AND_AGAIN))
    assert said == "gateway []\ngateway []\n"


def said_by(script: str) -> str:
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 0, said.stderr[-2000:]
    return said.stdout
