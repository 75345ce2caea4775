"""What a drill or a benchmark ran on, for whoever reads of it later: versions of everything, and the machine.

The machine's name is left out: a report is handed on.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from zerotail.deadline import Deadline
from zerotail.errors import ZerotailError
from zerotail.jars import locked_jars
from zerotail.kafka.client import librdkafka_version
from zerotail.machine import find_java, find_postgres_programs, find_postgres_version
from zerotail.postgres.connection import one_row, session

_PACKAGES = ("zerotail", "pyspark", "confluent-kafka", "psycopg")
_UNKNOWN = "not known"


def versions(database: str | None = None) -> dict[str, str]:
    """Of the servers, by what they say themselves or by the files that are run, and of the Python packages."""
    kafka = {jar.version for jar in locked_jars() if jar.folder == "kafka" and jar.artifact.startswith("kafka_")}
    return {
        "PostgreSQL": _installed_postgres() if database is None else _postgres(database),
        "Kafka": ", ".join(sorted(kafka)) or _UNKNOWN,
        "Spark": version("pyspark"),
        "Java": _java(),
        "Python": platform.python_version(),
        "librdkafka": librdkafka_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def machine() -> dict[str, str]:
    """Cores that may be used, what they are, memory, kernel."""
    found = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    memory = f"{int(found.group(1)) / 2**20:.1f} GiB" if found else _UNKNOWN
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "processor": _processor(),
        "memory": memory,
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def time_of_day(unix_seconds: float) -> str:
    """Date and time with the offset of this machine."""
    return datetime.fromtimestamp(unix_seconds).astimezone().isoformat(sep=" ", timespec="seconds")


def _postgres(database: str) -> str:
    with suppress(ZerotailError), session(database, Deadline.after(5)) as connection:
        return str(one_row(connection, "show server_version")[0])
    return _UNKNOWN


def _installed_postgres() -> str:
    programs = find_postgres_programs()
    return (find_postgres_version(programs) if programs else None) or _UNKNOWN


def _processor() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found.group(1).strip() if found else _UNKNOWN


def _java() -> str:
    java = find_java()
    if java is None:
        return _UNKNOWN
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    found = re.search(r'version "([^"]+)"', said)
    return found.group(1) if found else _UNKNOWN
