"""A takeover loads the same handlers as the flow of every day: a class, an instance, or a function that makes one."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from zerotail.errors import Misused
from zerotail.handler import Emission, Given, Record, State
from zerotail.operate.pipeline import HandlerByName

pytestmark = pytest.mark.fast

RECORD: Record = SimpleNamespace(value=None)  # type: ignore[assignment]


class Settle:
    """Needs the key of its name."""

    def keys(self, _record: Record) -> list[str]:
        return ["settled"]

    def apply(self, _record: Record, _state: State, _given: Given) -> list[Emission]:
        return []


INSTANCE = Settle()


def make() -> Settle:
    return Settle()


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    """This file, as somebody's code."""
    monkeypatch.setitem(sys.modules, "somebodys_code", sys.modules[__name__])


@pytest.mark.parametrize("name", ["Settle", "INSTANCE", "make"])
def test_it_is_made_when_the_first_record_comes(name: str) -> None:
    assert HandlerByName(f"somebodys_code:{name}").keys(RECORD) == ["settled"]


def test_what_is_no_handler_is_named() -> None:
    with pytest.raises(Misused, match="has no method keys"):
        HandlerByName("json:dumps.__doc__").keys(RECORD)
