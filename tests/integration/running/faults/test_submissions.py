"""Rows without a serial: whoever inserts them, and however many at once, each is taken once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.running import PATIENCE_SECONDS, Running
from zerotail.deadline import Deadline
from zerotail.postgres.connection import session

pytestmark = pytest.mark.servers

WRITERS = 6
ROUNDS = 20
ROWS = 10
_INSERT = """
insert into zerotail.submission (producer, partition, id, value)
select producer, n %% 2, %(writer)s || '/' || %(round)s || '/' || n,
       convert_to(json_build_object('account', 'desk ' || %(writer)s, 'amount', 1)::text, 'utf8')
  from zerotail.producer cross join generate_series(1, %(rows)s) as n where name = %(name)s
"""


def test_rows_of_several_writers_at_once_are_numbered_densely_and_taken_once(system: Running) -> None:
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(lambda writer: _write(system, str(writer)), range(WRITERS)))
    system.submitted += WRITERS * ROUNDS * ROWS
    system.wait_until_all_arrived()
    _write(system, "0")  # somebody who did not hear the answer
    left = "select count(*) from zerotail.submission join zerotail.producer using (producer) where name = %s"
    system.wait("they are looked at", lambda: system.sql(left, f"desk-{system.name}") == [(0,)])
    system.insert(20)
    system.wait_until_all_arrived()
    system.require_exactly_once()
    found = system.sql(
        "select partition, min(serial), max(serial), count(*), count(distinct id) from zerotail.instruction "
        "join zerotail.producer using (producer) where name = %s group by partition order by partition",
        f"desk-{system.name}",
    )
    each = WRITERS * ROUNDS * ROWS // system.partitions
    assert found == [(partition, 1, each, each, each) for partition in range(system.partitions)]


def _write(system: Running, writer: str) -> None:
    with session(system.database, Deadline.after(PATIENCE_SECONDS)) as primary:
        for number in range(ROUNDS):
            values = {"writer": writer, "round": number, "rows": ROWS, "name": f"desk-{system.name}"}
            assert primary.execute(_INSERT, values).rowcount == ROWS
