"""What is left before the active role can move: a message on its way is owed, one that was listed is in doubt."""

from __future__ import annotations

import pytest

from support.journal import BANK, FIRST, day_of
from zerotail.core.emission import Lane
from zerotail.core.identity import EmissionNumber, Incarnation, SiteName, epoch_of
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.ports import RecordDoubts
from zerotail.postgres.connection import connect
from zerotail.postgres.doubt import NOT_SENT, SENT, record_doubts, settle
from zerotail.postgres.owed import observe_drained

pytestmark = pytest.mark.servers

EAST, EPOCH, SENDER = SiteName("east"), epoch_of(1, 0), Incarnation(3)
LANE = Lane(BANK, FIRST)
LAST = EmissionNumber(5)


def test_a_message_on_its_way_is_owed_and_one_that_was_listed_is_in_doubt(warm_lab: Layout) -> None:
    with connect(day_of(warm_lab)[1], Deadline.after(30)) as database:
        before = observe_drained(database)
        assert before.emissions >= LAST
        database.execute(
            "insert into zerotail.lane (channel, partition, target, epoch, incarnation, acknowledged, intended) "
            "values (%s, %s, %s, %s, %s, 2, %s)",
            (*LANE, EPOCH, SENDER, LAST),
        )
        on_its_way = observe_drained(database)
        assert (on_its_way.emissions, on_its_way.doubts) == (before.emissions - 2, 0)
        record_doubts(database, RecordDoubts(LANE, EPOCH, SENDER, EmissionNumber(3), LAST), EAST)
        assert observe_drained(database).doubts == 3
        settle(database, LANE, EmissionNumber(3), EmissionNumber(3), SENT, "a test", sender_is_out=True)
        settle(database, LANE, EmissionNumber(4), LAST, NOT_SENT, "a test", sender_is_out=True)
        decided = observe_drained(database)
        assert (decided.emissions, decided.doubts) == (before.emissions - 3, 0)
