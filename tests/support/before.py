"""What a running pair left behind before the tables grew: `tests/before`.

It was made by programs of commit 95d0c6b (tables 0001 to 0009, record headers of version 1): three producers, a stage
of two partitions, a channel of class R2. One record was skipped by an operator, another one stops partition 0; rows
wait behind it, some of them in Kafka already, some rows have no serial yet, and some have not been sent at all.

    tables.sql      the schema `zerotail`, as pg_dump writes it
    records.jsonl   the topic: partition, header `zt` in hex, value
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.journal import new_database, superuser
from zerotail.lab.layout import Layout
from zerotail.machine import find_postgres_programs

BEFORE = Path(__file__).parents[1] / "before"
NAME = "before"
ACCEPTED = {0: 30, 1: 38}
"""What the receiver has taken, by partition."""
STOPPED = ("cards-before", 0, 16, "1dce8629e0c3c3d3")
"""Producer, partition, serial and digest of the record that nobody has decided about."""


def load_database(lab: Layout) -> tuple[str, str]:
    """A database with these tables: its name and its DSN."""
    name, database = new_database(lab)
    programs = find_postgres_programs(lab.bindir)
    loaded = [f"{programs}/psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(BEFORE / "tables.sql"), "-d", database]
    subprocess.run(loaded, check=True, stdout=subprocess.DEVNULL, timeout=60)
    return name, database


def definitions_of(lab: Layout, database: str) -> str:
    """The schema as pg_dump tells it."""
    dump = [f"{find_postgres_programs(lab.bindir)}/pg_dump", "--schema-only", "-n", "zerotail", "-d", database]
    said = subprocess.run(dump, check=True, capture_output=True, text=True, timeout=60).stdout
    return "\n".join(line for line in said.splitlines() if not line.startswith("\\"))  # a word drawn for each dump


def columns_of(database: str) -> dict[str, list[str]]:
    """The columns of every table."""
    found: dict[str, list[str]] = {}
    with superuser(database) as connection:
        for table, column in connection.execute(
            "select table_name, column_name from information_schema.columns "
            "where table_schema = 'zerotail' order by table_name, ordinal_position"
        ):
            found.setdefault(table, []).append(column)
    return found


def rows_of(database: str, columns: dict[str, list[str]]) -> dict[str, Counter[str]]:
    """The rows of every table, of these columns only."""
    with superuser(database) as connection:
        return {
            table: Counter(
                row
                for (row,) in connection.execute(f"select row({', '.join(names)})::text from zerotail.{table}".encode())
            )
            for table, names in columns.items()
        }


def records() -> Iterator[dict[str, Any]]:
    """The records of the topic, in order."""
    for line in (BEFORE / "records.jsonl").read_text().splitlines():
        yield json.loads(line)
