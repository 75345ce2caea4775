"""Wrong calls of `zerotail drill`: one message, exit code 2, and no lab is brought up for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import call


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("ZT117", ("run", "no-such-loss")),
        ("ZT118", ("report", "{empty}")),
        ("ZT121", ("run", "site-loss", "--dir", "{used}")),
    ],
)
def test_a_wrong_call_says_what_is_wrong(tmp_path: Path, code: str, words: tuple[str, ...]) -> None:
    empty, used = tmp_path / "empty", tmp_path / "used"
    empty.mkdir()
    (used / "history").mkdir(parents=True)
    said = call("drill", *(word.format(empty=empty, used=used) for word in words), "--json")
    assert said.code == 2
    assert said.answer("error")["code"] == code
    assert not any((used / "history").iterdir())


def test_the_demo_does_not_write_into_the_history_of_another_run(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    said = call("demo", "--dir", str(tmp_path))
    assert said.code == 2
    assert "holds the history of another drill" in said.err
