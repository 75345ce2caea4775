"""What all tests share: one warm lab of two real sites, brought up when the first test asks for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.healing import heal
from support.tiers import TIERS, require_tiers
from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.up import bring_up, take_down


def pytest_configure(config: pytest.Config) -> None:
    """Tests that run in the background of a shell have Ctrl-C ignored, behind `nohup` the end of a terminal, too; what
    they start shall not inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for tier, meaning in TIERS.items():
        config.addinivalue_line("markers", f"{tier}: {meaning}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No test outside the tiers."""
    require_tiers(items)


@pytest.fixture(scope="session")
def warm_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """Two sites for the whole session. Tests ask for `lab`, which hands it over healed."""
    folder = Path(tmp_path_factory.mktemp("warm")) / "lab"
    layout = bring_up(LabSettings(folder))
    try:
        yield layout
    finally:
        take_down(folder)


@pytest.fixture
def lab(warm_lab: Layout) -> Iterator[Layout]:
    """The warm lab with everything running and the link open, before and after the test.

    A test may kill, stop and cut. One that destroys a site or promotes a database brings up a lab of its own.
    """
    heal(warm_lab)
    yield warm_lab
    heal(warm_lab)
