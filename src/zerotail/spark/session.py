"""A Spark session with everything the flow needs, on any master.

Settings that the protocol relies on stand here once: Kafka's connector comes from the locked jars, a task is never
given half a partition, and nothing listens beyond what Spark itself needs.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from zerotail.jars import locked_jars, require_jars
from zerotail.spark.instruction_source import InstructionSource
from zerotail.spark.journal_source import JournalSource

_LOGGING = Path(__file__).with_name("log4j2.properties")
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.worker.reuse": "true",
    "spark.sql.streaming.stopTimeout": "20s",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # A checkpoint is thrown away at every start: how far a stage has come is in its head.
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def start_session(name: str, master: str = "local[2]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process; it knows our formats `zerotail-instructions` and `zerotail-journal`."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = require_jars("spark")
    jars = ",".join(str(folder / jar.file_name) for jar in locked_jars() if jar.folder == "spark")
    builder = SparkSession.builder.appName(name).master(master).config("spark.jars", jars)
    builder = builder.config(
        "spark.driver.extraJavaOptions",
        f"-Dlog4j2.configurationFile=file:{_LOGGING} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # Whoever runs a query says why it failed; Spark's own account is a page of JSON each time.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    spark.dataSource.register(InstructionSource)
    spark.dataSource.register(JournalSource)
    return spark


@contextmanager
def session_for_a_look(master: str = "local[2]", settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session for a command that looks and ends: it is closed behind the block."""
    spark = start_session("zerotail", master, settings)
    try:
        yield spark
    finally:
        spark.stop()
