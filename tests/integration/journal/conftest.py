"""One day's journal for all tests here, and copies of it to spoil."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.journal import Books, day_of, new_database
from zerotail.lab.layout import Layout


@pytest.fixture(scope="session")
def day(warm_lab: Layout) -> tuple[str, str, Books]:
    """Name, DSN and content of a database with a right journal. Nobody changes it."""
    return day_of(warm_lab)


@pytest.fixture
def copy(warm_lab: Layout, day: tuple[str, str, Books]) -> Callable[[], str]:
    """Makes a copy of the day's database and answers its DSN."""
    return lambda: new_database(warm_lab, day[0])[1]
