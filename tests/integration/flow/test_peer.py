"""The other site's database says something nobody expects: the gate stays closed, and this site goes on asking."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from psycopg.conninfo import make_conninfo

from support.flow import EAST
from zerotail.core.gate import GateAnswer
from zerotail.kafka.cluster import Cluster
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.ports import AskGate, Unreachable
from zerotail.wiring import AdapterSettings, SiteAdapters

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("wrong", [{"dbname": "template1"}, {"dbname": "nowhere"}, {"user": "nobody"}])
def test_a_database_that_cannot_answer_the_gate_confirms_nothing(lab: Layout, wrong: dict[str, str]) -> None:
    own, peer = dsn(lab.database("east")), dsn(lab.database("west"), seen_from="east")
    right = AdapterSettings(EAST, own, peer, Cluster(lab.bootstrap("east")))
    with closing(SiteAdapters(right)) as east:
        assert isinstance(east.carry_out(AskGate()), GateAnswer)
    with closing(SiteAdapters(replace(right, peer_dsn=make_conninfo(peer, **wrong)))) as east:
        assert [east.carry_out(AskGate()) for _ in range(2)] == [Unreachable(), Unreachable()]
