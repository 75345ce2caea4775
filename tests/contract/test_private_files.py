"""What is written to disk is for its owner only (E27)."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import zerotail
from zerotail.private import make_folder, open_file, write_file

pytestmark = pytest.mark.fast

SOURCE = Path(zerotail.__file__).parent
HOLD_WHAT_CUSTOMERS_SENT = ("drill", "operate", "spool", "mirror", "postgres")
OTHERS = {
    "drill/durability/manual.py": "a page of the docs, from a result that is published",
    "postgres/rejoin.py": "a setting in the data folder of a server, which has rights of its own",
}
WRITES = ("write_text", "write_bytes", "mkdir", "touch")


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_whatever_the_umask_nobody_else_can_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "notes"
    make_folder(folder)
    make_folder(folder)
    write_file(folder / "text", "é")
    write_file(folder / "bytes", b"\0")
    with open_file(folder / "lines", "w", encoding="utf-8") as file:
        file.write("line")
    assert [mode(path) for path in (folder.parent, folder)] == [0o700, 0o700]
    assert {path.name: mode(path) for path in folder.iterdir()} == {"text": 0o600, "bytes": 0o600, "lines": 0o600}
    assert (folder / "text").read_text() == "é"


@pytest.mark.usefixtures("open_umask")
def test_what_somebody_else_made_keeps_its_rights(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    (tmp_path / "shared" / "page").touch(mode=0o644)
    make_folder(tmp_path / "shared")
    write_file(tmp_path / "shared" / "page", "new")
    assert (mode(tmp_path / "shared"), mode(tmp_path / "shared" / "page")) == (0o755, 0o644)


@pytest.mark.parametrize("package", HOLD_WHAT_CUSTOMERS_SENT)
def test_what_may_hold_customers_data_is_written_that_way(package: str) -> None:
    files = [path for path in (SOURCE / package).rglob("*.py") if str(path.relative_to(SOURCE)) not in OTHERS]
    assert files
    assert {
        str(path.relative_to(SOURCE)): list(_plain_writes(path)) for path in files if any(_plain_writes(path))
    } == {}


def _plain_writes(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        opens = node.func.attr == "open" and any(
            isinstance(word, ast.Constant) and isinstance(word.value, str) and set(word.value) & set("wxa")
            for word in node.args[:1]
        )
        if opens or node.func.attr in WRITES:
            yield f"{path.name}, line {node.lineno}: {ast.unparse(node)}"
