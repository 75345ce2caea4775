"""How a load is cut into steps, and how its progress is shown."""

from __future__ import annotations

import io
import sys

import pytest

from zerotail.cli.progress import count_display
from zerotail.lab.load import LoadSettings

pytestmark = pytest.mark.fast


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("rate", "writers", "step"),
    [(0.5, 4, 1), (10, 4, 1), (1000, 4, 50), (40_000, 4, 2000), (1_000_000, 1, 2000), (0, 1, 2000), (0, 4, 8000)],
)
def test_a_step_is_a_twentieth_of_a_second_and_never_too_much_at_once(rate: float, writers: int, step: int) -> None:
    assert LoadSettings(100, rate, writers).step == step


def test_without_a_terminal_progress_is_a_line_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    now = [100.0]
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr("zerotail.cli.progress.time.monotonic", lambda: now[0])
    with count_display("lab load", 70) as tell:
        for done in range(0, 70, 10):
            now[0] += 0.4
            tell(done)
    assert shown.getvalue() == "lab load: 20 of 70\nlab load: 50 of 70\n"


def test_on_a_terminal_progress_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with count_display("lab load", 70) as tell:
        tell(70)
    assert "━" in shown.getvalue()
    assert "70/70" in shown.getvalue()
