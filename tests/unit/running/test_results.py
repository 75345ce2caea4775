"""What tasks of Spark tell their driver arrives whole, and cannot be anything else."""

from __future__ import annotations

import pickle
from dataclasses import fields

import pytest

from zerotail.config import ConfigurationProblems
from zerotail.core.chain import Chain
from zerotail.core.head import Head, Hint
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Offset,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
)
from zerotail.core.poison import Poison
from zerotail.errors import Broken, Refused, ZerotailError
from zerotail.flow.stage import Taken
from zerotail.kafka.copy_order import Outcome
from zerotail.ports import End
from zerotail.spark.results import Slow, pack, pack_outcome, unpack, unpack_outcome

pytestmark = pytest.mark.fast

HEAD = Head(
    Epoch(257),
    SegmentNumber(3),
    Position(40),
    {ProducerNumber(1): Serial(2**62), ProducerNumber(2): Serial(0)},
    {(ChannelName("bank"), PartitionNumber(1)): EmissionNumber(7)},
    Chain(bytes(range(32))),
    Chain(bytes(32)),
    1_760_000_000_000_000,
    Hint("cluster/topic", Offset(12)),
    2,
)
POISON = Poison(ProducerNumber(1), Serial(5), Position(41), bytes(range(8)), "TypeError: 'é'")


@pytest.mark.parametrize(
    "outcome", [None, *End, Taken(HEAD, 1, 2, 3, 4, 5), Taken(HEAD, 1, 0, 0, 0, 0, POISON, 3), Slow()]
)
def test_outcomes_arrive_as_they_were(outcome: Taken | End | Slow | None) -> None:
    assert unpack_outcome(pack_outcome(outcome)) == outcome


def test_an_error_arrives_with_all_that_it_says() -> None:
    error = unpack_outcome(pack_outcome(Refused("no.", code="ZT303", why="because", tries=("this", "that"))))
    assert isinstance(error, Refused)
    assert (error.message, error.code, error.why, error.tries) == ("no.", "ZT303", "because", ("this", "that"))


def test_an_error_of_a_kind_of_its_own_arrives_as_what_it_is_a_kind_of() -> None:
    error = unpack_outcome(pack_outcome(ConfigurationProblems((), "zerotail.yaml")))
    assert isinstance(error, ZerotailError)
    assert error.exit_code == ConfigurationProblems.exit_code


@pytest.mark.parametrize("data", [b"", b"\xc1", pickle.dumps(print), pack({"taken": 1}), pack([1, 2])])
def test_anything_else_is_an_error_and_runs_nothing(data: bytes) -> None:
    with pytest.raises(Broken, match="a task of Spark answered with something that is no StageResult"):
        unpack_outcome(data)


def test_what_a_mirror_copied_arrives() -> None:
    outcome = Outcome("copying", "note", 5, 1, 900, 6, 2, 0.5, 0.25, "kind", {"batch-size-avg": 2.0})
    assert len(fields(outcome)) == 11
    assert unpack(pack(outcome), Outcome) == outcome
