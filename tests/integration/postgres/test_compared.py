"""Copies are compared by what they hold: also by rows that no dense cut counts."""

from __future__ import annotations

import pytest

from zerotail.deadline import Deadline
from zerotail.postgres.completeness import compare_copies
from zerotail.postgres.connection import connect, one_row

pytestmark = pytest.mark.servers

_LAST = """
select producer.producer, coalesce(max(serial), 0)
  from zerotail.producer left join zerotail.instruction using (producer)
 where producer.name = 'wires' and coalesce(partition, 0) = 0 group by 1
"""
_GIVEN = "insert into zerotail.instruction (producer, partition, serial, id, value) values (%s, 0, %s, %s, '{}')"


def test_an_acknowledged_row_above_a_hole_is_missed(database: str) -> None:
    with connect(database, Deadline.after(30)) as copy, connect(database, Deadline.after(30)) as active:
        # What is not committed stands for what a replica that was behind has never got.
        copy.execute("begin")
        copy.execute("update zerotail.producer set serials = 'given' where name = 'wires'")
        producer, last = one_row(copy, _LAST)
        compared = compare_copies(lambda work: work(copy), lambda work: work(active))
        assert compared.instructions == 0
        copy.execute(_GIVEN.encode(), (producer, last + 2, "above a hole"))
        assert compare_copies(lambda work: work(copy), lambda work: work(active)).instructions == 1
        copy.execute(_GIVEN.encode(), (producer, last + 1, "in the hole"))
        assert compare_copies(lambda work: work(copy), lambda work: work(active)).instructions == 2
        assert compare_copies(lambda work: work(active), lambda work: work(copy)).instructions == 0
        copy.execute("rollback")
