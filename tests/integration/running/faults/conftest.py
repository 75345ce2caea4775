"""One running system for all tests that break its neighbours: each start of Spark takes many seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.healing import heal
from support.running import Running, running_system
from zerotail.lab.layout import Layout


@pytest.fixture(scope="package")
def running_site(warm_lab: Layout, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`zerotail run all` at one site, with two partitions, as little owed as the configuration allows."""
    folder = Path(tmp_path_factory.mktemp("faults"))
    options: dict[str, Any] = {
        "partitions": 2,
        "numbered": ("desk",),
        "stage": {"owed": "64kB", "handler_timeout": "2s"},
        "transform": "picky",
    }
    options["spark"] = {"max_records_per_batch": 1000}
    with running_system(warm_lab, folder, "faults", **options) as system:
        system.start("all")
        system.wait_for_line("running stage")
        system.wait_for_line("running producers")
        yield system


@pytest.fixture
def system(running_site: Running) -> Iterator[Running]:
    """The running system, with everything sent that it owed; after the test it must have sent everything once."""
    heal(running_site.lab)
    running_site.insert(50)
    running_site.wait_until_all_arrived()
    yield running_site
    heal(running_site.lab)
