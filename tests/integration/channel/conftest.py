"""Why a batch may leave, in both ways."""

from __future__ import annotations

import pytest

from zerotail.core.gate import Asker, GateAnswer, Release
from zerotail.core.identity import Epoch, Lsn, Timeline


@pytest.fixture
def exposed_and_gated() -> tuple[Release, Release]:
    """Because the epoch is exposed, and because the gate has opened."""
    asker, answer = Asker(1, Timeline(1), Epoch(256)), GateAnswer(True, 1, Timeline(1), Epoch(256), Lsn(1))
    return Release(asker, Lsn(1), None), Release(asker, Lsn(1), answer)
