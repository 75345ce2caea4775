"""Every test belongs to one of three tiers, by a mark of that name: a test without one would be run by nobody.

`fast` needs no servers, `servers` has real ones (`make test` runs both), `nightly` takes too long for every day. A test
that carries none, or two, ends the run before it begins.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def require_tiers(items: Iterable[pytest.Item]) -> None:
    """End the run when a test is in no tier, or in two of them."""
    if faults := find_tier_faults(items):
        lines = "\n  ".join(faults)
        marks = ", ".join(f"pytest.mark.{tier}" for tier in TIERS)
        raise pytest.UsageError(f"each test carries one of {marks}; these do not:\n  {lines}")
