"""A Spark session for a command that looks and ends: quiet, without a web page, closed behind its block."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from zerotail.spark.journal_source import JournalSource

_LOOPBACK = "127.0.0.1"


@contextmanager
def local_session(master: str = "local[2]", settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session that knows the format `zerotail-journal`; it ends with the block."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    builder = SparkSession.builder.master(master).appName("zerotail")
    quiet = {
        "spark.ui.enabled": "false",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
    }
    for name, value in {**quiet, **(settings or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        spark.dataSource.register(JournalSource)
        yield spark
    finally:
        spark.stop()
