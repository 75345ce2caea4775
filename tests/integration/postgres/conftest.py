"""The pair of databases, handed over in its normal state."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.pair import PATIENCE_SECONDS, Pair, control_session
from zerotail.deadline import Deadline
from zerotail.lab.layout import Layout
from zerotail.postgres.synchronous import set_synchronous_standby, wait_until_streaming


@pytest.fixture
def pair(lab: Layout) -> Iterator[Pair]:
    """The pair in its normal state: west follows, commits wait for it."""
    with control_session(lab) as control:
        control.execute("create table if not exists truth (number bigint primary key)")
        wait_until_streaming(control, "west", Deadline.after(PATIENCE_SECONDS))
        set_synchronous_standby(control, "west")
        yield Pair(lab, control)
