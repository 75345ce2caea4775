"""Instruction rows by ADBC, whose connection is kept from one question to the next."""

from __future__ import annotations

import pytest

from zerotail.deadline import Deadline
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import one_row, session
from zerotail.postgres.feed_arrow import read_rows

pytestmark = pytest.mark.servers

END_ALL = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'zerotail producer'"


def test_a_connection_that_has_died_since_is_made_anew(lab: Layout) -> None:
    east = dsn(lab.database("east"))
    assert list(read_rows(east, 1_000_000, 0, 1, 2)) == []
    with session(east, Deadline.after(30)) as database:
        assert one_row(database, END_ALL)[0] >= 1
    assert list(read_rows(east, 1_000_000, 0, 1, 2)) == []
