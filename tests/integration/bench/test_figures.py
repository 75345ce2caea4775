"""`make figures` in small: every benchmark runs, its result is stored with a stamp, and its page is made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from zerotail.bench.published import PUBLISHED

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3000)]

ROOT = Path(__file__).parents[3]


def test_every_figure_is_measured_stored_and_shown(tmp_path: Path) -> None:
    before = {one: (ROOT / one.page).read_bytes() for one in PUBLISHED.values()}
    program = [sys.executable, str(ROOT / "tools" / "figures.py"), "--quick", str(tmp_path / "quick")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    for one in PUBLISHED.values():
        stored = one.read(tmp_path / "quick")
        assert stored is not None, one.name
        assert all(stamp.commit and stamp.machine for stamp in stored.stamps)
        page = (tmp_path / "quick" / one.page).read_text(encoding="utf-8")
        assert "Not measured yet" not in page
        assert f"by `{stored.stamps[-1].command}`" in page
        assert (ROOT / one.page).read_bytes() == before[one], "a quick series publishes nothing"
