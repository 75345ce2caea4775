"""In an exposed epoch everything that is sent says so, or nothing is sent, as the policy has it."""

from __future__ import annotations

from threading import Event

import pytest

from support.command import call
from support.journal import BANK, FIRST
from zerotail.core.emission import Lane
from zerotail.core.identity import SiteName
from zerotail.core.receiver import ReceiverClass, Welcome
from zerotail.deadline import Deadline
from zerotail.flow.emit import HELD, Sender, emit
from zerotail.kafka.cluster import Cluster
from zerotail.ports import Accepted, ClaimAtReceiver, SendEmissions
from zerotail.postgres.connection import connect
from zerotail.wiring import AdapterSettings, SiteAdapters, Stopped, drive

pytestmark = pytest.mark.servers

EAST = SiteName("east")
NOBODY = "host=127.0.0.1 port=1 dbname=postgres"
"""The other site's database does not answer: there is none."""


class Outside:
    """Takes everything."""

    def __init__(self) -> None:
        self.batches: list[SendEmissions] = []

    def claim(self, _effect: ClaimAtReceiver) -> Welcome:
        return Welcome(None, None)

    def send(self, effect: SendEmissions) -> Accepted:
        self.batches.append(effect)
        return Accepted(effect.last)

    def close(self) -> None:
        pass


def sent(database: str, *, release_exposed: bool) -> tuple[list[SendEmissions], str]:
    """What an emitter sends until it pauses, and why it does."""
    outside, stop, reasons = Outside(), Event(), list[str]()

    def heed(reason: str) -> None:
        if reason:
            reasons.append(reason)
            stop.set()

    adapters = SiteAdapters(AdapterSettings(EAST, database, NOBODY, Cluster("127.0.0.1:1")))
    adapters.attach(BANK, outside)
    sender = Sender(Lane(BANK, FIRST), ReceiverClass.R1, EAST, release_exposed=release_exposed)
    try:
        with pytest.raises(Stopped):
            drive(emit(sender), adapters, stop, heed)
    finally:
        adapters.close()
    return outside.batches, reasons[0]


def test_with_the_policy_hold_nothing_leaves(exposed: str) -> None:
    assert sent(exposed, release_exposed=False) == ([], HELD)


def test_with_the_policy_release_everything_leaves_and_is_flagged(exposed: str) -> None:
    batches, reason = sent(exposed, release_exposed=True)
    assert reason == "nothing is owed"
    assert len(batches) > 1
    assert all(batch.exposed for batch in batches)


def test_the_list_of_emissions_says_that_the_epoch_is_exposed(exposed: str) -> None:
    shown = call("emissions", "list", "--dsn", exposed)
    assert shown.out.startswith("EXPOSED: no other site confirms what is sent now.\nchannel ")
    assert call("emissions", "list", "--dsn", exposed, "--json").answer("emissions-list")["exposed"] is True
    with connect(exposed, Deadline.after(30)) as connection:
        connection.execute("update zerotail.epoch set durability = 'gated'")
    assert "EXPOSED" not in call("emissions", "list", "--dsn", exposed).out
    assert call("emissions", "list", "--dsn", exposed, "--json").answer("emissions-list")["exposed"] is False
