"""The lab for restores: none of these tests breaks anything in it, so that it is healed once for each module."""

from __future__ import annotations

import pytest

from support.healing import heal
from zerotail.lab.layout import Layout


@pytest.fixture(scope="module")
def lab(warm_lab: Layout) -> Layout:
    """The warm lab with everything running and the link open."""
    heal(warm_lab)
    return warm_lab
