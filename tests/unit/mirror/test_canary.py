"""What became of canaries: lost, late, doubled."""

from __future__ import annotations

import pytest

from zerotail.mirror.canary import judge_flight

pytestmark = pytest.mark.fast


def test_all_that_came_once_and_in_time_is_well() -> None:
    report = judge_flight("f", {0: 10.0, 1: 11.0}, {0: [10.5], 1: [11.1]}, late_seconds=1.0)
    assert report.is_well
    assert (report.sent, report.arrived, report.median_seconds, report.worst_seconds) == (2, 2, 0.3, 0.5)


def test_lost_late_and_doubled_are_counted() -> None:
    sent = {number: float(number) for number in range(4)}
    report = judge_flight("f", sent, {0: [0.1], 1: [9.0], 3: [3.1, 3.2, 3.3]}, late_seconds=1.0)
    assert (report.lost, report.late, report.doubled) == (1, 1, 2)
    assert not report.is_well


def test_nothing_that_came_has_no_times() -> None:
    report = judge_flight("f", {0: 1.0}, {}, late_seconds=1.0)
    assert (report.lost, report.median_seconds, report.worst_seconds) == (1, None, None)
