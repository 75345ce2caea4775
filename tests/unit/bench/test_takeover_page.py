"""What is known of takeovers, how later rounds join it, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from zerotail.bench import takeover
from zerotail.bench.result import MirroredRound, TakeoverResult, TakeoverRound
from zerotail.bench.stored import Stored
from zerotail.bench.takeover import TakeoverSettings, bench_takeover
from zerotail.bench.takeover_page import picture_of, section_of, write_page
from zerotail.drill.judgement import Counts

pytestmark = pytest.mark.fast

NOTHING_WRONG = Counts(submitted=10, received=10, lost=0, duplicated=0, reordered=0, in_doubt=0, evidence=())


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The histories that were measured; each takes as many seconds as it has thousands, and loses nothing."""
    histories: list[int] = []

    def lose_sites(
        _settings: TakeoverSettings, history: int, takeovers: int, _tell: takeover.Tell
    ) -> tuple[list[TakeoverRound], Counts]:
        histories.append(history)
        steps = {"promote": 0.3, "first new message": 0.5}
        return [TakeoverRound(history, history / 1000, 2.0, 0.3, 0, 12, steps)] * takeovers, NOTHING_WRONG

    def mirror(_rate: float, _tell: takeover.Tell) -> MirroredRound:
        return MirroredRound(1_000, 3, 400, 9.5, 9.6)

    monkeypatch.setattr(takeover, "_bench_history", lose_sites)
    monkeypatch.setattr(takeover, "fail_over_once", mirror)
    return histories


def measure(*histories: int, mirrored: int = 0, earlier: TakeoverResult | None = None) -> TakeoverResult:
    saved: list[TakeoverResult] = []
    settings = TakeoverSettings(histories, (2,) * len(histories), mirrored_rounds=mirrored)
    found = bench_takeover(settings, lambda _line: None, earlier, saved.append)
    assert saved[-1] == found, "what was measured is kept"
    return found


def test_what_was_measured_before_stays_and_what_is_measured_again_is_new(measured: list[int]) -> None:
    first = measure(1_000, 1_200, mirrored=1)
    both = measure(1_200, 1_400, earlier=first)
    assert measured == [1_000, 1_200, 1_200, 1_400]
    assert both.medians_by_history == {"1000": 1.0, "1200": 1.2, "1400": 1.4}
    assert [one.history for one in both.rounds] == [1_000, 1_000, 1_200, 1_200, 1_400, 1_400]
    assert [one.history for one in both.judged] == [1_000, 1_200, 1_400]
    assert both.mirrored == first.mirrored
    assert both.growth == 1.4


def test_one_history_says_nothing_about_another(measured: list[int]) -> None:
    found = measure(1_000)
    assert measured == [1_000]
    assert "flat" not in found.reached
    assert "the longest history" not in section_of(Stored((), found))


@pytest.mark.usefixtures("measured")
def test_a_takeover_that_grows_with_the_history_is_told() -> None:
    assert measure(1_000, 1_400).reached["flat"]
    assert not measure(1_000, 1_600).reached["flat"]


@pytest.mark.usefixtures("measured")
def test_the_page_shows_every_history_and_the_failover_beside_it(tmp_path: Path) -> None:
    found = measure(1_000, 6_000, mirrored=2)
    section = section_of(Stored((), found))
    assert "| 6,000 | 2 | 6.00 | 6.00–6.00 | 0.30 | 12 | 0 |" in section
    assert section.count("| MirrorMaker 2, loss") == 2
    assert "| 1,000 | 3 | 400 | 9.50 |" in section
    assert "| none longer than 5 s | the worst 6.00 s | **not reached** |" in section
    assert "which begins cold" in section
    page = tmp_path / "benchmarks.md"
    page.write_text("# Benchmarks\n\nbefore\n")
    write_page(Stored((), found), page)
    write_page(Stored((), found), page)
    assert page.read_text().count("## Takeover") == 1
    assert page.read_text().startswith("# Benchmarks\n\nbefore\n")
    assert (tmp_path / "bench-takeover.svg").read_text() == picture_of(found)
    assert picture_of(found).count("<rect") == 1 + 4 + 2
