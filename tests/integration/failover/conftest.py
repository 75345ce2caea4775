"""A lab and a flow for the tests of one module: sites change their roles in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.arena import Arena
from support.sites import Sites, working_sites


@pytest.fixture(scope="module")
def sites(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Two sites with a flow that is at work in east; the tests of a module go on from where the one before ended."""
    with working_sites(arena.renewed(), tmp_path_factory.mktemp("sites"), ("east", "west"), 100) as pair:
        yield pair
