"""A business submits from Python: an instruction counts when its row is behind the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.running import Running
from zerotail import Submitter, submit
from zerotail.config import load
from zerotail.core.identity import SiteName
from zerotail.errors import Misused, Unfinished
from zerotail.lab.fault import continue_target, stop_target
from zerotail.lab.layout import Layout
from zerotail.running.prepare import prepare

pytestmark = pytest.mark.servers


@pytest.fixture
def system(lab: Layout, tmp_path: Path) -> Running:
    system = Running(lab, tmp_path, "submitted")
    system.write()
    prepare(load(system.config), SiteName("east"))
    return system


def test_an_instruction_is_accepted_once_however_often_it_is_submitted(system: Running) -> None:
    with Submitter(system.config, "east") as business:
        first = business.submit("cards-submitted", "c-1", {"account": "a", "amount": 5})
        second = business.submit("cards-submitted", "c-2", {"account": "a", "amount": 6})
        again = business.submit("cards-submitted", "c-1", {"account": "a", "amount": 5})
    assert (second, again) == (first + 1, first)
    assert submit(system.config, "east", "cards-submitted", "c-2", {"account": "a", "amount": 6}) == second
    with pytest.raises(Misused, match="no producer"):
        submit(system.config, "east", "nobody", "c-3", {})


def test_an_instruction_that_the_other_site_lacks_is_not_accepted(system: Running, lab: Layout) -> None:
    with Submitter(system.config, "east") as business:
        business.submit("cards-submitted", "w-1", {"account": "a", "amount": 5})
        assert stop_target(lab, "west.postgres").bit
        try:
            with pytest.raises(Unfinished, match="nobody knows"):
                business.submit("cards-submitted", "w-2", {"account": "a", "amount": 5}, patience_seconds=1)
        finally:
            continue_target(lab, "west.postgres")
        rows = system.sql("select count(*) from zerotail.instruction where id = 'w-2'")
        assert rows == [(1,)], "it is there, and nobody was told"
        assert business.submit("cards-submitted", "w-2", {"account": "a", "amount": 5}) > 0
