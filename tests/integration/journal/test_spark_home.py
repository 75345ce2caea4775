"""Spark's Python processes import the installed pyspark, which is compiled, and not an archive of its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.servers


def test_workers_import_the_installed_pyspark(spark: SparkSession) -> None:
    def where(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark.worker

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [pyspark.worker.__file__]})

    found = spark.range(1).mapInArrow(where, "file string").collect()
    assert {Path(row.file).parent for row in found} == {Path(pyspark.__file__).parent}
