"""The business of a drill, where it touches no database."""

from __future__ import annotations

import threading

import pytest

from zerotail.drill.business import Business

pytestmark = pytest.mark.fast


class Counted(Business):
    """Does not submit; says that it would."""

    def _work(self) -> None:
        WORKING.release()
        self._stop.wait(10)


WORKING = threading.Semaphore(0)


def test_a_business_that_is_started_twice_submits_once() -> None:
    business = Counted({}, {}, rate=100.0)
    business.start()
    business.start()
    business.stop()  # returns when every thread has ended, hence has said that it works
    assert WORKING.acquire(blocking=False)
    assert not WORKING.acquire(blocking=False), "there was one thread"
    business.start()
    assert WORKING.acquire(timeout=10), "after a stop it goes on"
    business.stop()
