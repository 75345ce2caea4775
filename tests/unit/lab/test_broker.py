"""The settings of a Kafka node."""

from __future__ import annotations

from pathlib import Path

import pytest

from zerotail.lab.broker import new_cluster_id, server_properties
from zerotail.lab.layout import LabSettings, plan_layout, ports_needed

pytestmark = pytest.mark.fast


def test_a_cluster_id_never_looks_like_an_option() -> None:
    # One in 64 would begin with a dash.
    chosen = [new_cluster_id() for _ in range(2000)]
    assert all(len(one) == 22 and not one.startswith("-") for one in chosen)
    assert len(set(chosen)) == 2000


@pytest.mark.parametrize(("brokers", "copies", "in_sync"), [(1, "1", "1"), (3, "3", "2")])
def test_what_is_acknowledged_survives_a_node_where_there_are_three(
    tmp_path: Path, brokers: int, copies: str, in_sync: str
) -> None:
    settings = LabSettings(tmp_path, brokers=brokers)
    layout = plan_layout(settings, list(range(20000, 20000 + ports_needed(settings))))
    text = server_properties(layout, layout.broker("east.kafka.1"))
    properties = dict(line.split("=", 1) for line in text.splitlines())
    assert properties["default.replication.factor"] == copies
    assert properties["min.insync.replicas"] == in_sync
    assert properties["auto.create.topics.enable"] == "false"
    assert f"ACROSS://127.0.0.1:{layout.broker('east.kafka.1').link_port}" in properties["advertised.listeners"]
