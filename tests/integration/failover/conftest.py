"""A lab and a flow for the tests of one module: sites change their roles in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.sites import Sites, two_sites
from zerotail.lab.layout import LabSettings
from zerotail.lab.up import bring_up, take_down


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Two sites with a flow that is at work in east; the tests of a module go on from where the one before ended."""
    folder = Path(tmp_path_factory.mktemp("sites"))
    layout = bring_up(LabSettings(folder / "lab"))
    try:
        with two_sites(layout, folder) as pair:
            pair.start("east")
            pair.start("west")
            pair.insert("east", 100)
            pair.wait_until_all_arrived("east")
            yield pair
    finally:
        take_down(folder / "lab")
