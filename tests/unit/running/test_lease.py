"""A sender to a receiver without memory sends only so long behind its intent (E19)."""

from __future__ import annotations

from typing import Any

import pytest

from zerotail import ports
from zerotail.core.emission import Lane
from zerotail.core.gate import Release
from zerotail.core.identity import ChannelName, EmissionNumber, Incarnation, PartitionNumber, SiteName, epoch_of
from zerotail.core.receiver import LEASE_SECONDS, SETTLED_AFTER_SECONDS
from zerotail.kafka.cluster import Cluster
from zerotail.wiring import AdapterSettings, SiteAdapters

pytestmark = pytest.mark.fast

LANE, EPOCH, SENDER = Lane(ChannelName("fax"), PartitionNumber(0)), epoch_of(1, 0), Incarnation(1)
INTENT = ports.RecordIntent(LANE, EPOCH, SENDER, EmissionNumber(0), EmissionNumber(1))


class Fax:
    """Takes whatever comes."""

    def __init__(self) -> None:
        self.sent = 0

    def send(self, effect: ports.SendEmissions) -> ports.Accepted:
        self.sent += 1
        return ports.Accepted(effect.last)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("stood", "sends"), [(0.0, 1), (LEASE_SECONDS, 1), (LEASE_SECONDS + 0.01, 0)])
def test_whoever_stood_still_behind_its_intent_sends_nothing(stood: float, sends: int) -> None:
    now, fax = 100.0, Fax()
    settings = AdapterSettings(SiteName("east"), "host=127.0.0.1 port=1", "host=127.0.0.1 port=1", Cluster("nowhere:1"))
    adapters = SiteAdapters(settings, clock=lambda: now)
    adapters.attach(LANE.channel, fax)  # type: ignore[arg-type]
    release: Release = None  # type: ignore[assignment]
    batch = ports.SendEmissions(LANE, EPOCH, SENDER, EmissionNumber(1), [b"one"], EmissionNumber(0), release)
    adapters.carry_out(INTENT)  # whether it is stored is another question: whoever is answered sends
    now += stood
    answer: Any = adapters.carry_out(batch)
    assert fax.sent == sends
    assert isinstance(answer, ports.Accepted if sends else ports.Unreachable)
    adapters.close()


def test_a_lease_is_over_before_anybody_settles() -> None:
    assert LEASE_SECONDS < SETTLED_AFTER_SECONDS
