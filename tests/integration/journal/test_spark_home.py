"""Spark's Python processes import the installed pyspark, which is compiled, and workers find everything imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from zerotail.spark.worker import CODE_OF_TASKS

pytestmark = pytest.mark.servers


def test_workers_import_the_installed_pyspark(spark: SparkSession) -> None:
    def where(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark.worker

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [pyspark.worker.__file__]})

    found = spark.range(1).mapInArrow(where, "file string").collect()
    assert {Path(row.file).parent for row in found} == {Path(pyspark.__file__).parent}


def test_a_worker_has_everything_imported_before_its_first_task(spark: SparkSession) -> None:
    def what(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"name": list(sys.modules)})

    found = {row.name for row in spark.range(1).mapInArrow(what, "name string").collect()}
    assert found >= set(CODE_OF_TASKS)
