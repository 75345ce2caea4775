"""The pair of databases, handed over in its normal state, and one with a day of work in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.journal import day_of
from support.pair import PATIENCE_SECONDS, Pair, control_session
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import connect
from zerotail.postgres.synchronous import set_synchronous_standby, wait_until_streaming


@pytest.fixture
def pair(lab: Layout) -> Iterator[Pair]:
    """The pair in its normal state: west follows, commits wait for it."""
    with control_session(lab) as control:
        control.execute("create table if not exists truth (number bigint primary key)")
        wait_until_streaming(control, "west", Deadline.after(PATIENCE_SECONDS))
        set_synchronous_standby(control, "west")
        yield Pair(lab, control)


@pytest.fixture
def database(warm_lab: Layout) -> str:
    """One with a day of work in it."""
    return day_of(warm_lab)[1]


@pytest.fixture
def exposed(database: str) -> str:
    """The same, working alone."""
    with connect(database, Deadline.after(PATIENCE_SECONDS)) as connection:
        connection.execute("update zerotail.epoch set durability = 'exposed'")
    return database
