"""The smallest drill's verdict can fail in every way it names."""

from __future__ import annotations

import pytest

from zerotail.drill.released_rows import compare

RELEASED = {1: "a", 2: "b", 3: "c"}


def test_everything_released_is_there_and_more_may_be() -> None:
    assert compare(RELEASED, RELEASED).passed
    assert compare(RELEASED, {**RELEASED, 4: "d"}).passed


@pytest.mark.parametrize(
    ("survived", "missing", "different", "gaps"),
    [
        ({1: "a", 2: "b"}, (3,), (), ()),
        ({1: "a", 3: "c"}, (2,), (), (2,)),
        ({1: "a", 2: "x", 3: "c"}, (), (2,), ()),
        ({**RELEASED, 5: "e"}, (), (), (4,)),
        ({}, (1, 2, 3), (), ()),
    ],
)
def test_a_lost_a_changed_and_a_skipped_row_fail_the_drill(
    survived: dict[int, str], missing: tuple[int, ...], different: tuple[int, ...], gaps: tuple[int, ...]
) -> None:
    comparison = compare(RELEASED, survived)
    assert not comparison.passed
    assert (comparison.missing, comparison.different, comparison.gaps) == (missing, different, gaps)


def test_a_drill_in_which_nothing_was_released_proves_nothing() -> None:
    assert not compare({}, {}).passed
