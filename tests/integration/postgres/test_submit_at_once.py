"""Two clients submit at the same moment under one identifier: the same instruction is stored once, and both learn its
serial; of two different ones the second is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import pytest

from support.journal import CARDS, FIRST, SECOND
from zerotail.core.identity import PartitionNumber, SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.ports import Refused, Submit, Submitted
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.feed import submit
from zerotail.postgres.transaction import Session

pytestmark = pytest.mark.servers

PATIENCE = 20.0
_BLOCKED = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
_STORED = "select count(*) from zerotail.instruction where producer = %s and id = 'same'"


def test_it_is_stored_once_and_both_learn_its_serial(database: str) -> None:
    serials = [answer.serial for answer in submitted_at_once(database, FIRST, b"1") if isinstance(answer, Submitted)]
    assert len(serials) == 2
    assert len(set(serials)) == 1


@pytest.mark.parametrize(("second_partition", "second_value"), [(SECOND, b"1"), (FIRST, b"2")])
def test_another_one_under_its_identifier_is_refused(
    database: str, second_partition: PartitionNumber, second_value: bytes
) -> None:
    first, second = submitted_at_once(database, second_partition, second_value)
    assert isinstance(first, Submitted)
    assert second == Refused(f"its identifier belongs to another instruction, serial {first.serial} of partition 0")


def submitted_at_once(database: str, second_partition: PartitionNumber, second_value: bytes) -> list[object]:
    """The answers to two clients, of which the second has to wait for the first."""
    stored, go_on = Event(), Event()

    def then_wait(answer: Submitted) -> Submitted:
        stored.set()
        assert go_on.wait(PATIENCE)
        return answer

    def ask(partition: PartitionNumber, value: bytes, then: Callable[[Submitted], Submitted]) -> object:
        wanted = Submit(CARDS, partition, "same", value)
        with closing(Session(database)) as client:
            return client.write(lambda one: then(submit(one, wanted, SiteName("east"))))

    with (
        connect(database, Deadline.after(PATIENCE)) as looking,
        ThreadPoolExecutor(2) as clients,
    ):
        first = clients.submit(ask, FIRST, b"1", then_wait)
        assert stored.wait(PATIENCE)
        second = clients.submit(ask, second_partition, second_value, lambda answer: answer)
        wait_until("the second client waits", lambda: is_blocked(looking), Deadline.after(PATIENCE))
        go_on.set()
        answers = [first.result(PATIENCE), second.result(PATIENCE)]
        assert one_row(looking, _STORED, (CARDS,)) == (1,)
    return answers


def is_blocked(connection: Connection) -> bool:
    return one_row(connection, _BLOCKED) != (0,)
