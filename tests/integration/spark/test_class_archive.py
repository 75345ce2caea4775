"""The image of Spark's classes is used where it fits, and is passed over without a word where it does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from zerotail.lab.broker import require_java
from zerotail.spark import class_archive
from zerotail.spark.class_archive import archive_options

pytestmark = pytest.mark.servers


def test_one_that_does_not_fit_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled = tmp_path / "spoiled.jsa"
    spoiled.write_bytes(b"no image" * 1000)
    monkeypatch.setattr(class_archive, "class_archive", lambda: spoiled)
    said = subprocess.run(
        [require_java(), *archive_options().split(), "-version"], capture_output=True, text=True, check=True
    )
    assert str(spoiled) in archive_options()
    assert "shared" not in said.stdout + said.stderr
    assert "archive" not in said.stdout + said.stderr


def test_without_one_nothing_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "class_archive", lambda: tmp_path / "none.jsa")
    assert archive_options() == ""


def test_the_set_up_has_made_one() -> None:
    assert class_archive.class_archive().is_file()
