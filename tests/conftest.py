"""What all tests share: one warm lab of two real sites, brought up when the first test asks for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.workermanage import WorkerController

from support import chapters, seeds, tiers
from support.arena import Arena, open_arena
from support.healing import heal
from support.lanes import Lanes, write_seconds
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
    for mark, meaning in {**tiers.TIERS, chapters.MARK: chapters.MEANING}.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    seeds.seed_property_tests()


def pytest_report_header() -> str:
    """The seed, before anything has failed."""
    return seeds.told()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No test outside the tiers."""
    tiers.require_tiers(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """No chapter without those before it."""
    session.items[:] = chapters.with_earlier_chapters(session.items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    """Two lanes side by side."""
    return Lanes(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """A worker has ended, and tells what it has found."""
    tiers.hear_worker(getattr(node, "workeroutput", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Workers that found a test outside the tiers have run nothing."""
    tiers.end_with_faults(session)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A story that broke off is not gone on with."""
    chapters.require_earlier_chapters(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with each failure how to see it again."""
    report = yield
    chapters.remember_failure(item, report)
    if report.failed:
        report.sections.append(("to see it again", seeds.repeating(item.nodeid)))
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport) -> None:
    """The same of a test that ended its process."""
    report.sections.append(("to see it again", seeds.repeating(crashitem)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The seed once more, where the eye ends; on demand, what each module took is written down."""
    for line in tiers.lines_of_faults():
        terminalreporter.write_line(line, red=True)
    terminalreporter.write_line(seeds.told())
    if "ZT_TEST_DURATIONS" in os.environ:
        reports = [one for kind in ("passed", "failed", "error", "") for one in terminalreporter.getreports(kind)]
        write_seconds((one.nodeid, one.duration) for one in reports if isinstance(one, pytest.TestReport))


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

    A test may kill, stop and cut. One that destroys a site or promotes a database does that in the arena.
    """
    heal(warm_lab)
    yield warm_lab
    heal(warm_lab)


@pytest.fixture(scope="session")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Two sites that may be ruined; `arena.renewed()` is as good as new, for the one who asked last."""
    with open_arena(Path(tmp_path_factory.mktemp("arena"))) as one:
        yield one
