"""A queue is named by its folder, or by the producer that the configuration says it belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import call
from zerotail import Spool
from zerotail.config import load
from zerotail.running.parts import plan_parts

pytestmark = pytest.mark.fast

CONFIG = """
name: shop
sites:
  east: {kafka: {bootstrap: "127.0.0.1:1"}, database: {dsn: "host=127.0.0.1 port=1 dbname=core"}}
  west: {kafka: {bootstrap: "127.0.0.1:2"}, database: {dsn: "host=127.0.0.1 port=2 dbname=core"}}
prefer: east
topics: {payments: {partitions: 1}}
producers:
  cards: {topic: payments, source: spool, spool: queue}
  wires: {topic: payments}
stages: {settle: {consumes: payments, handler: "zerotail.testing:Handler"}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "zerotail.yaml"
    file.write_text(CONFIG)
    return file


def test_a_producer_that_is_fed_from_a_spool_runs_like_any_other(config: Path) -> None:
    (cards,) = plan_parts(load(config), ["cards"], ()).producers
    assert (cards.name, cards.topic, cards.numbered) == ("cards", "payments", True)


def test_a_queue_is_found_by_the_name_of_its_producer(config: Path, tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "cards") as spool:
        spool.put("c-1", b"{}")
    said = call("spool", "status", "--producer", "cards", "--config", str(config), "--json")
    assert said.answer("spool-status")["spool"]["waiting"] == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--producer", "wires"), 2, "no producer 'wires' with source: spool"),
        (("--producer", "nobody"), 2, "no producer 'nobody' with source: spool"),
        (("--producer", "cards", "queue"), 2, "the folder of a queue, or --producer"),
        ((), 2, "the folder of a queue, or --producer"),
    ],
)
def test_a_queue_that_is_not_named_once_is_refused(config: Path, words: tuple[str, ...], code: int, says: str) -> None:
    said = call("spool", "status", *words, "--config", str(config), "--json")
    assert said.code == code
    assert says in said.answer("error")["message"]


def test_a_folder_with_the_entries_of_another_producer_is_refused(config: Path, tmp_path: Path) -> None:
    with Spool(tmp_path / "queue", "wires") as spool:
        spool.put("w-1", b"{}")
    said = call("spool", "drain", "--producer", "cards", "--config", str(config), "--json")
    assert said.code == 3
    assert said.answer("error")["code"] == "ZT903"
