"""Every test belongs to one of three tiers, by a mark of that name: a test without one would be run by nobody.

`fast` needs no servers, `servers` has real ones (`make test` runs both), `nightly` takes too long for every day. A test
that carries none, or two, ends the run before it begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

TIERS = {
    "fast": "starts no servers; `make test-fast` and `make test` run it",
    "servers": "has real Kafka, PostgreSQL or Spark; `make test` runs it",
    "nightly": "takes too long for every day; `make nightly` runs it",
}


def find_tier_faults(items: Iterable[pytest.Item]) -> list[str]:
    """A line for each test that is not in exactly one tier."""
    faults = []
    for item in items:
        found = sorted({mark.name for mark in item.iter_markers() if mark.name in TIERS})
        if len(found) != 1:
            faults.append(f"{item.nodeid}: {' and '.join(found) or 'no tier'}")
    return faults


_AT_WORKERS = "tests outside the tiers"
_found: list[str] = []


def require_tiers(config: pytest.Config, items: list[pytest.Item]) -> None:
    """End the run when a test is in no tier, or in two of them.

    What a worker of xdist raises here its controller cannot tell: it runs nothing, and hands over what it found.
    """
    faults = find_tier_faults(items)
    if faults and hasattr(config, "workeroutput"):
        config.workeroutput[_AT_WORKERS] = faults
        items.clear()
    elif faults:
        raise pytest.UsageError(_told(faults))


def hear_worker(workeroutput: dict[str, Any]) -> None:
    """Remember what a worker has found; all of them find the same."""
    _found[:] = workeroutput.get(_AT_WORKERS, _found)


def end_with_faults(session: pytest.Session) -> None:
    """Let the run end as a wrong call does."""
    if _found:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def lines_of_faults() -> list[str]:
    """What there is to say at the end of a run whose workers have found something."""
    return ["ERROR: " + _told(_found)] if _found else []


def _told(faults: Sequence[str]) -> str:
    lines = "\n  ".join(faults)
    marks = ", ".join(f"pytest.mark.{tier}" for tier in TIERS)
    return f"each test carries one of {marks}; these do not:\n  {lines}"
