"""Configurations for the tests of `zerotail.config`: one that is right, and what becomes of it after a
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from zerotail.config import Configuration, Flag, Problem, load, problems

RIGHT = """\
name: settlement
sites:
  east:
    kafka: {bootstrap: "127.1.0.1:9092,127.1.0.2:9092"}
    database: {dsn: "host=127.1.0.9 dbname=core user=zerotail"}
  west:
    kafka: {bootstrap: "127.2.0.1:9092,127.2.0.2:9092"}
    database: {dsn: "host=127.2.0.9 dbname=core user=zerotail"}
prefer: east
topics: {payments: {partitions: 4}, ledger: {partitions: 2}}
producers:
  cards: {topic: payments}
stages:
  settle: {consumes: payments, handler: "shop.flows:Settle", emits: [bank, booking]}
  book: {consumes: ledger, handler: "shop.flows:Book"}
channels:
  bank: {kind: http, url: "https://bank.example/transfers", receiver: R1}
  booking: {kind: topic, topic: ledger}
takeover: {automatic: off, after: 10s}
spark: {master: "local[2]"}
"""


def write(folder: Path, text: str | bytes) -> Path:
    """A configuration file with this text."""
    path = folder / "zerotail.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def changed(old: str, new: str, text: str = RIGHT) -> str:
    """The text with one change, which must bite."""
    assert text.count(old) == 1, old
    return text.replace(old, new)


def loaded(folder: Path, text: str = RIGHT, environment: Mapping[str, str] | None = None) -> Configuration:
    """The configuration that this text describes."""
    return load(write(folder, text), environment or {})


def found(
    folder: Path,
    text: str | bytes,
    environment: Mapping[str, str] | None = None,
    flags: Sequence[Flag] = (),
) -> tuple[Problem, ...]:
    """What is wrong with this text."""
    return problems(write(folder, text), environment or {}, flags)


def said(folder: Path, text: str | bytes, environment: Mapping[str, str] | None = None) -> list[str]:
    """What is wrong with this text, as the screen shows it, without the folder."""
    return [str(problem).removeprefix(f"{folder}/") for problem in found(folder, text, environment)]
