"""One day's journal for all tests here, and copies of it to spoil."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from support.journal import Books, day_of, new_database
from zerotail.lab.layout import Layout
from zerotail.spark.session import session_for_a_look


@pytest.fixture(scope="session")
def day(warm_lab: Layout) -> tuple[str, str, Books]:
    """Name, DSN and content of a database with a right journal. Nobody changes it."""
    return day_of(warm_lab)


@pytest.fixture
def copy(warm_lab: Layout, day: tuple[str, str, Books]) -> Callable[[], str]:
    """Makes a copy of the day's database and answers its DSN."""
    return lambda: new_database(warm_lab, day[0])[1]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark for all tests here."""
    with session_for_a_look() as session:
        yield session
