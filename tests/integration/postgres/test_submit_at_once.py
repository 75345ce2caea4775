"""Two clients submit one instruction at the same moment: it is stored once, and both learn its serial."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import pytest

from support.journal import CARDS, FIRST, SECOND
from zerotail.core.identity import PartitionNumber, SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.ports import Submit, Submitted
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.feed import submit
from zerotail.postgres.transaction import Session

pytestmark = pytest.mark.servers

PATIENCE = 20.0
_BLOCKED = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
_STORED = "select count(*) from zerotail.instruction where producer = %s and id = 'same'"


@pytest.mark.parametrize("second_partition", [FIRST, SECOND])
def test_it_is_stored_once_and_both_learn_its_serial(database: str, second_partition: PartitionNumber) -> None:
    stored, go_on = Event(), Event()

    def then_wait(answer: Submitted) -> Submitted:
        stored.set()
        assert go_on.wait(PATIENCE)
        return answer

    def ask(partition: PartitionNumber, then: Callable[[Submitted], Submitted]) -> object:
        wanted = Submit(CARDS, partition, "same", b"1")
        with closing(Session(database)) as client:
            return client.write(lambda one: then(submit(one, wanted, SiteName("east"))))

    with (
        connect(database, Deadline.after(PATIENCE)) as looking,
        ThreadPoolExecutor(2) as clients,
    ):
        first = clients.submit(ask, FIRST, then_wait)
        assert stored.wait(PATIENCE)
        second = clients.submit(ask, second_partition, lambda answer: answer)
        wait_until("the second client waits", lambda: is_blocked(looking), Deadline.after(PATIENCE))
        go_on.set()
        answers = [first.result(PATIENCE), second.result(PATIENCE)]
        assert one_row(looking, _STORED, (CARDS,)) == (1,)
    serials = [answer.serial for answer in answers if isinstance(answer, Submitted)]
    assert len(serials) == len(answers)
    assert len(set(serials)) == 1


def is_blocked(connection: Connection) -> bool:
    return one_row(connection, _BLOCKED) != (0,)
