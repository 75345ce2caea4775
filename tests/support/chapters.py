"""Tests that are chapters of one story: each begins where the one before it ended.

A module says so with `pytest.mark.chapters`. Whichever of its tests is asked for, those before it are run as well, in
their order, so that each can be asked for alone; behind one that failed the others are failed at once, with its name,
since what they begin with is not there.
"""

from __future__ import annotations

import pytest

MARK = "chapters"
MEANING = "the tests of this module follow each other: whichever is asked for, those before it are run first"
_failed: dict[pytest.Collector, str] = {}


def with_earlier_chapters(chosen: list[pytest.Item]) -> list[pytest.Item]:
    """What was chosen, and in front of each chapter those before it."""
    found: dict[str, pytest.Item] = {}
    for item in chosen:
        if is_chapter(item) and item.nodeid not in found:
            found |= {one.nodeid: one for one in _story_up_to(item)}
        found.setdefault(item.nodeid, item)
    return list(found.values())


def _story_up_to(item: pytest.Item) -> list[pytest.Item]:
    """The story from its beginning, collected in one go: chapters share what their module has set up only then."""
    assert isinstance(item.parent, pytest.Module)
    story = [one for one in item.parent.collect() if isinstance(one, pytest.Item)]
    return story[: [one.nodeid for one in story].index(item.nodeid) + 1]


def is_chapter(item: pytest.Item) -> bool:
    """Whether it belongs to a story."""
    return item.get_closest_marker(MARK) is not None


def require_earlier_chapters(item: pytest.Item) -> None:
    """Fail at once when a chapter before this one has failed."""
    if is_chapter(item) and item.parent in _failed:
        pytest.fail(f"{_failed[item.parent]} failed, and this test begins where it ends", pytrace=False)


def remember_failure(item: pytest.Item, report: pytest.TestReport) -> None:
    """Remember the first chapter of a story that failed."""
    if report.failed and is_chapter(item) and item.parent is not None:
        _failed.setdefault(item.parent, item.name)
