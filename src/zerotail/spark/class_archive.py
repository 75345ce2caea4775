"""A memory image of Spark's classes, which halves what a session's start costs.

    python -m zerotail.spark.class_archive FILE

Starting a driver is mostly loading and checking some ten thousand classes. Java can keep them ready in an archive file,
written once, at the end of a run. It holds the paths of all jars, so it lies in the Spark that it was made of and
goes with it; Java itself finds out when it no longer fits (other jars, another Java) and then starts without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from zerotail.deadline import Deadline, wait_until
from zerotail.jars import jars_folder, require_jars
from zerotail.spark.home import spark_home, use_spark_home

_PATIENCE_SECONDS = 180.0
_OF_KAFKA = ("org/apache/kafka/clients/", "org/apache/kafka/common/", "org/apache/spark/sql/kafka010/")


def class_archive() -> Path:
    """Where the image is, or would be: other jars have another one."""
    return spark_home() / f"classes-{jars_folder('spark').parent.name}.jsa"


def archive_options() -> str:
    """How a driver uses the image, if there is one; one that does not fit is passed over without a word."""
    archive = class_archive()
    return f"-XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off" if archive.is_file() else ""


def make_class_archive() -> Path | None:
    """Run a session in a process of its own and let Java write the image; None when it cannot be kept here."""
    archive = class_archive()
    use_spark_home()
    if not os.access(archive.parent, os.W_OK):
        return None
    # Beside its place, for the last step is a rename, which does not cross file systems.
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".archive-") as scratch:
        written = Path(scratch) / archive.name
        command = [sys.executable, "-m", __name__, str(written)]
        subprocess.run(command, check=False, timeout=_PATIENCE_SECONDS, capture_output=True)
        if not written.is_file():
            return None
        for outdated in archive.parent.glob("classes-*.jsa"):
            outdated.unlink()
        written.rename(archive)
    return archive


def _pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _take(batch: DataFrame, _number: int) -> None:
    batch.mapInArrow(_pass_on, batch.schema).collect()


def _run_a_session(archive: str) -> None:
    """Everything that a driver usually does, once, so that the classes for it are loaded."""
    from zerotail.spark.session import start_session
    from zerotail.spark.worker import warm_up

    spark = start_session("classes", java_options=f"-XX:ArchiveClassesAtExit={archive}")
    warm_up(spark)
    _load_connector(spark)
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1").option("subscribe", "t").load()
    beats = spark.readStream.format("rate").load().writeStream
    query = beats.foreachBatch(_take).start()
    deadline = Deadline.after(_PATIENCE_SECONDS)
    wait_until("a batch is done", lambda: query.lastProgress or query.exception(), deadline, every_seconds=0.1)
    query.stop()
    gateway = spark.sparkContext._gateway
    spark.stop()
    if gateway is not None:
        # Java ends with its input, and writes the image then.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_PATIENCE_SECONDS)


def _load_connector(spark: SparkSession) -> None:
    """The classes of Kafka's connector and client by name: there is no broker with whom they would come to be used."""
    java = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]
    loader = java.Thread.currentThread().getContextClassLoader()
    for jar in require_jars("spark").glob("*.jar"):
        for entry in ZipFile(jar).namelist():
            if entry.startswith(_OF_KAFKA) and entry.endswith(".class"):
                with suppress(Py4JJavaError):  # it is for a library that nobody has asked for
                    java.Class.forName(entry.removesuffix(".class").replace("/", "."), False, loader)


if __name__ == "__main__":
    _run_a_session(sys.argv[1])
