"""A Spark session with everything the flow needs, on any master.

Settings that the protocol relies on stand here once: Kafka's connector comes from the locked jars, a task is never
given half a partition, and nothing listens beyond what Spark itself needs.

Executors on a cluster get what this process has: Kafka's connector through the driver, the folders in which it finds
Python code, and its Python. They must find the same folders and the same Python where they run; a configuration can
name others under `spark.executorEnv.PYTHONPATH` and `spark.pyspark.python`.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyspark import SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from zerotail.children import find_children
from zerotail.jars import locked_jars, require_jars
from zerotail.spark.class_archive import archive_options
from zerotail.spark.follow_source import FollowSource
from zerotail.spark.home import use_spark_home
from zerotail.spark.instruction_source import InstructionSource
from zerotail.spark.java import end_java
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
    # A query that finds nothing asks Kafka for the end of its log again after this time; the 10 ms of the default keep
    # broker and driver busy for nothing (decision 0027).
    "spark.sql.streaming.pollingDelay": "30ms",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "zerotail.spark.daemon",
    # Over TCP a small batch waits 40 ms at the worker's socket: Nagle's algorithm against delayed acknowledgements.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.stopTimeout": "20s",
    # Connection strings and logins are options of sources; plans and logs show options.
    "spark.sql.redaction.options.regex": "(?i)url|dsn|jaas|password|secret|token|ssl[.]key",
    # A checkpoint is thrown away at every start: how far a stage has come is in its head.
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_JAVA_OPTIONS = f"-Dlog4j2.configurationFile=file:{_LOGGING} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOOPBACK = "127.0.0.1"
_STDERR = 2
_ON_THIS_MACHINE = ("local", f"spark://{_LOOPBACK}:", "spark://localhost:")


def start_session(
    name: str,
    master: str = "local[2]",
    settings: Mapping[str, str] | None = None,
    *,
    java_options: str | None = None,
) -> SparkSession:
    """The session of this process; it knows our formats `zerotail-instructions` and `zerotail-journal`.

    The driver uses the image of its classes, unless other `java_options` are given. A start that fails leaves no JVM.
    """
    before, children = SparkContext._active_spark_context, find_children()
    try:
        return _start(name, master, settings or {}, java_options)
    except BaseException:
        if before is None:
            end_java(children)
        raise


def _start(name: str, master: str, given: Mapping[str, str], java_options: str | None) -> SparkSession:
    use_spark_home()
    os.environ["PYSPARK_PYTHON"] = given.get("spark.pyspark.python", sys.executable)
    options = archive_options() if java_options is None else java_options
    # The JVM does not ask TMPDIR by itself.
    options = f"{_JAVA_OPTIONS} {shlex.quote(f'-Djava.io.tmpdir={tempfile.gettempdir()}')} {options}".strip()
    builder = SparkSession.builder.appName(name).master(master)
    builder = builder.config("spark.driver.extraJavaOptions", options)
    for key, value in {**_SETTINGS, **_connector(master), **_where(master), **_trust(master, given), **given}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # In front of what an executor's own environment says; a setting `spark.executorEnv.PYTHONPATH` would replace that.
    spark.sparkContext.environment.setdefault("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    # Whoever runs a query says why it failed; Spark's own account is a page of JSON each time.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    spark.dataSource.register(InstructionSource)
    spark.dataSource.register(JournalSource)
    spark.dataSource.register(FollowSource)
    return spark


def _connector(master: str) -> dict[str, str]:
    """Kafka's connector: on the driver's own class path, where its classes can be in the image; sent to executors."""
    folder = require_jars("spark")
    jars = [str(folder / jar.file_name) for jar in locked_jars() if jar.folder == "spark"]
    settings = {"spark.driver.extraClassPath": os.pathsep.join(jars)}
    return settings if master.startswith("local") else {**settings, "spark.jars": ",".join(jars)}


def _trust(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """On a cluster whoever speaks is known, and nobody reads along (E26): tasks carry connection strings.

    A master of Spark's own shares its secret with everybody; the configuration has checked whether there is one.
    """
    if master.startswith("local") or (master.startswith("spark://") and "spark.authenticate.secret" not in given):
        return {}
    return {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def _where(master: str) -> dict[str, str]:
    """What depends on where tasks run: with all of them on this machine, nobody else is listened to."""
    if not master.startswith(_ON_THIS_MACHINE):
        return {}
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    return {
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
    }


@contextmanager
def session_for_a_look(master: str = "local[2]", settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session for a command that looks and ends: it is closed behind the block.

    What Java and Spark's workers say by themselves is not part of the answer: a worker that is stopped with something
    in its hands leaves a traceback. Whatever fails is raised here.
    """
    with tempfile.TemporaryFile() as said:
        with _said_into(said):
            spark = start_session("zerotail", master, settings)
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def _said_into(file: IO[bytes]) -> Iterator[None]:
    """Let processes that are started in the block have `file` for their errors; shown when the block fails."""
    sys.stderr.flush()
    own = os.dup(_STDERR)
    os.dup2(file.fileno(), _STDERR)
    failed = True
    try:
        yield
        failed = False
    finally:
        os.dup2(own, _STDERR)
        os.close(own)
        if failed:
            file.seek(0)
            sys.stderr.write(file.read().decode(errors="replace"))
