"""Receivers outside, for the tests that send."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.outside import Judge, Outside, http_outside, kafka_outside, postgres_outside, start_servers
from support.simulated_outside import simulated_outside
from zerotail.core.receiver import ReceiverClass
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.lab.ports import release_ports, reserve_ports
from zerotail.simulation.outside import Kind
from zerotail.spark.session import session_for_a_look

KINDS: dict[str, tuple[Callable[[Any, ReceiverClass], Outside], ReceiverClass]] = {
    **{f"http-{one.value}": (http_outside, one) for one in ReceiverClass},
    **{f"kafka-{one.value}": (kafka_outside, one) for one in (ReceiverClass.R0, ReceiverClass.R1)},
    **{f"postgres-{one.value}": (postgres_outside, one) for one in (ReceiverClass.R0, ReceiverClass.R1)},
}
SIMULATED = "simulated-"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark to look with, for the whole session. Nobody ends it."""
    with session_for_a_look() as session:
        yield session


@pytest.fixture(scope="session")
def judge_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """The receiver process of the session."""
    folder = Path(tmp_path_factory.mktemp("judge"))
    port, control_port = reserve_ports(2, folder)
    judge = Judge(port, control_port, folder)
    judge.start()
    yield judge
    judge.kill()
    release_ports(folder)


@pytest.fixture
def judge(judge_process: Judge) -> Iterator[Judge]:
    """A receiver with a channel for each class, well behaved before and after the test."""
    yield judge_process
    judge_process.control.behave(deadline=Deadline.after(10))


@pytest.fixture(scope="module")
def servers_outside(warm_lab: Layout) -> Layout:
    """Kafka and PostgreSQL of the outside, which tests of another module may have ended."""
    start_servers(warm_lab)
    return warm_lab


@pytest.fixture
def outside(request: pytest.FixtureRequest) -> Outside:
    """The kind and class that the test names."""
    if request.param.startswith(SIMULATED):
        kind, receiver_class = request.param.removeprefix(SIMULATED).split("-")
        return simulated_outside(Kind(kind), ReceiverClass(receiver_class))
    make, receiver = KINDS[request.param]
    place = request.getfixturevalue("judge" if make is http_outside else "servers_outside")
    return make(place, receiver)
