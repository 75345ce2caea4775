"""Both sites write and read, for a minute or for as long as one likes: every record crosses once, none comes back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import call
from support.mirrors import configuration, end_offset, make_topic, read, start_mirror, write
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.clusters import temporary_clusters
from zerotail.lab.layout import SITES, Layout

SECONDS = float(os.environ.get("ZT_TEST_BOTH_WAYS_SECONDS", "60"))
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(SECONDS + 600)]

MIRROR = "  - {topology: active-active, source: east, target: west, topics: [both], topic_names: identity}\n"
PARTITIONS = 2
AT_ONCE = 50
QUIET_SECONDS = 10.0
"""So long nothing may grow after everybody has stopped writing; a circle would go on for ever."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[Layout]:
    with temporary_clusters() as layout:
        yield layout


def of_site(site: str, first: int, count: int) -> list[bytes | None]:
    return [f"{site} {number}".encode() for number in range(first, first + count)]


def ends(layout: Layout) -> list[int]:
    return [end_offset(layout, site, "both", partition) for site in SITES for partition in range(PARTITIONS)]


def test_what_both_sites_write_is_at_both_sites_once_and_then_nothing_moves(clusters: Layout, tmp_path: Path) -> None:
    config = configuration(clusters, tmp_path, MIRROR)
    for site in SITES:
        make_topic(clusters, site, "both", PARTITIONS)
    written = 0
    mirror = start_mirror(config)
    try:
        mirror.wait_until_said("running mirror")
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for site in SITES:
                for partition in range(PARTITIONS):
                    write(clusters, site, "both", of_site(site, written, AT_ONCE), partition)
            written += AT_ONCE
        for partition in range(PARTITIONS):
            wait_until(
                "everything is at both sites",
                lambda: all(len(read(clusters, one, "both", partition)) >= 2 * written for one in SITES),  # noqa: B023
                Deadline.after(120),
                every_seconds=0.5,
            )
        # Markers of the last transactions may follow the records.
        still = wait_until("nothing moves", lambda: _find_still(clusters), Deadline.after(60))
        resting = time.monotonic() + QUIET_SECONDS
        while time.monotonic() < resting:
            assert ends(clusters) == still
    finally:
        mirror.end()
    for site in SITES:
        for partition in range(PARTITIONS):
            seen = [value for _, value, *_ in read(clusters, site, "both", partition)]
            assert len(seen) == 2 * written
            for origin in SITES:
                own = [value for value in seen if value is not None and value.startswith(origin.encode())]
                assert own == of_site(origin, 0, written)
    verified = call("mirror", "verify", "--config", str(config))
    assert verified.code == 0, verified.out + verified.err


def _find_still(layout: Layout) -> list[int] | None:
    before = ends(layout)
    time.sleep(1.0)  # the length of a look: two of them must agree
    return before if ends(layout) == before else None
