"""A partition in a process of its own, as far as the thread that gives the orders is concerned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zerotail.core.identity import PartitionNumber
from zerotail.deadline import Deadline, wait_until
from zerotail.spark import alone
from zerotail.spark.alone import Alone
from zerotail.spark.alone_worker import Begun, Finished
from zerotail.spark.results import pack_outcome

pytestmark = pytest.mark.fast


class Worker:
    """Answers each order as its class says, and counts them."""

    unread = True
    orders = 0

    def __init__(self, _module: str) -> None:
        self._answers: list[Any] = []

    def tell(self, order: Any) -> None:
        if not isinstance(order, SimpleNamespace):
            type(self).orders += 1
            self._answers = [Begun(0, None), Finished(pack_outcome(None), None, unread=self.unread)]

    def hear(self) -> Any:
        return self._answers.pop(0)

    def kill(self) -> None:
        """Nothing runs."""

    def end(self) -> str:
        return "it ended"


def begin(monkeypatch: pytest.MonkeyPatch, *, unread: bool) -> tuple[Alone, type[Worker]]:
    worker = type("One", (Worker,), {"unread": unread, "orders": 0})
    monkeypatch.setattr(alone, "OwnProcess", worker)
    monkeypatch.setattr(alone, "_IDLE_SECONDS", 0.0)
    place: Any = SimpleNamespace(head=SimpleNamespace(hint=None), stopped=None)
    job: Any = SimpleNamespace(stage=SimpleNamespace(name="settle", partition=PartitionNumber(0)))
    return Alone(job, {PartitionNumber(0): place}, lambda *_: None), worker


def test_a_log_that_cannot_be_read_is_given_back_to_where_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    one, worker = begin(monkeypatch, unread=True)
    wait_until("it gives up", lambda: one.over, Deadline.after(10))
    one.close()
    assert worker.orders == alone._UNREAD_LOOKS


def test_a_log_with_nothing_new_is_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one, worker = begin(monkeypatch, unread=False)
    wait_until("it has looked often", lambda: worker.orders > 3 * alone._UNREAD_LOOKS, Deadline.after(10))
    assert not one.over
    one.close()
