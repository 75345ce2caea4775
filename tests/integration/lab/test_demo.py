"""The first command of the README."""

from __future__ import annotations

import pytest

from support.command import call

pytestmark = pytest.mark.servers


def test_the_demo_loses_a_site_and_nothing_that_was_released() -> None:
    said = call("demo", "--rows", "200", "--json")
    assert said.code == 0, said.err
    report = said.answer("demo")
    assert report["passed"]
    assert report["comparison"]["released"] >= 200
    assert report["comparison"]["missing"] == report["comparison"]["different"] == []
    assert report["released_after"] == 0
    assert report["committed"] >= report["comparison"]["released"]
    assert "gone" in report["evidence"][0]
