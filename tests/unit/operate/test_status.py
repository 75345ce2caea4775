"""Where an act stands, by the notes of this machine and by what the databases say."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.standings import EAST, WEST, observed, standing
from zerotail.config import Configuration
from zerotail.core.epoch import Phase
from zerotail.core.identity import Timeline
from zerotail.operate import status
from zerotail.operate.notebook import Note, Notebook, now
from zerotail.operate.status import ActStatus, observe_status
from zerotail.operate.world import World
from zerotail.ports import SiteObserved

pytestmark = pytest.mark.fast

DRAINING = Phase.DRAINING
OPENED = observed(standing(2, WEST, phase=Phase.OPENED, cause="takeover"))
PROMOTED = observed(standing(timeline=Timeline(2)))
HANDED = observed(standing(2, WEST, phase=Phase.OPENED, cause="handover"))
LIVE = observed(standing(2, WEST, cause="takeover"))
STANDBY = observed(standing(timeline=None))


@pytest.fixture(autouse=True)
def _no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_recorded", lambda _dsn, _epoch: [])


def seen(configuration: Configuration, folder: Path, world: World, act: str = "takeover") -> ActStatus:
    return observe_status(configuration, world, Notebook(folder), act)


@pytest.mark.parametrize("west", [OPENED, PROMOTED, HANDED])
def test_a_takeover_that_was_begun_on_another_machine_is_unfinished_here_too(
    configuration: Configuration, tmp_path: Path, west: SiteObserved
) -> None:
    one = seen(configuration, tmp_path, World({EAST: None, WEST: west}))
    assert (one.unfinished, one.begun_at, one.next) == (WEST, None, "zerotail takeover resume --to west")


def test_what_is_live_or_a_standby_is_finished(configuration: Configuration, tmp_path: Path) -> None:
    for world in (World({EAST: None, WEST: LIVE}), World({EAST: observed(standing()), WEST: STANDBY})):
        assert seen(configuration, tmp_path, world).unfinished is None
        assert seen(configuration, tmp_path, world, "handover").unfinished is None


def test_what_was_begun_here_is_resumed_here(configuration: Configuration, tmp_path: Path) -> None:
    with (notebook := Notebook(tmp_path)).locked():
        notebook.write(Note("takeover", WEST, EAST, "a plan", "somebody", (), now()))
    one = seen(configuration, tmp_path, World({EAST: None, WEST: STANDBY}))
    assert (one.unfinished, one.next) == (WEST, "zerotail takeover resume")
    assert one.begun_at


def test_a_site_that_drains_hands_over_and_a_failback_leads_to_the_preferred_site(
    configuration: Configuration, tmp_path: Path
) -> None:
    draining = World({EAST: observed(standing(phase=DRAINING)), WEST: STANDBY})
    handed = seen(configuration, tmp_path, draining, "handover")
    assert (handed.unfinished, handed.next) == (WEST, "zerotail handover plan --to west")
    assert seen(configuration, tmp_path, draining, "failback").unfinished is None, "east is preferred"
    assert seen(configuration, tmp_path, draining).unfinished is None
    back = World({EAST: observed(standing(2, WEST, timeline=None)), WEST: observed(standing(2, WEST, phase=DRAINING))})
    assert seen(configuration, tmp_path, back, "failback").unfinished == EAST
    opened = seen(configuration, tmp_path, World({EAST: None, WEST: HANDED}), "handover")
    assert (opened.unfinished, opened.next) == (WEST, "zerotail takeover resume --to west")


def test_what_an_old_primary_says_does_not_count_beside_a_later_epoch(
    configuration: Configuration, tmp_path: Path
) -> None:
    old = observed(standing(phase=DRAINING))
    assert seen(configuration, tmp_path, World({EAST: old, WEST: LIVE}), "handover").unfinished is None
