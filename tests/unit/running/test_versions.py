"""A version of a stage covers the user's code, and nothing but that."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zerotail.code import digest_of_code, find_code_beside, load_object
from zerotail.running.code_versions import version_of

pytestmark = pytest.mark.fast

FILES = {
    "shop_flows.py": "import json\nimport shop.rates as rates\nfrom shop import fees\n\n\nclass Settle:\n    pass\n\n\n"
    "def to_record(value):\n    return value\n",
    "shop/__init__.py": "",
    "shop/rates.py": "from . import tables\n\nRATE = 2\n",
    "shop/tables.py": "def late():\n    from shop.later import LATER\n    return LATER\n",
    "shop/later.py": "LATER = 1\n",
    "shop/fees.py": "import numpy\n\nFEE = 3\n",
    "shop/other.py": "OTHER = 1\n",
}


class Shop:
    """The user's code in a folder, which can be changed and imported anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in FILES.items():
            self.write(name, text)
        find_code_beside(folder / "zerotail.yaml")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def load(self, name: str) -> Any:
        self.forget()
        return load_object(f"shop_flows:{name}", "a test")

    def forget(self) -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] in ("shop", "shop_flows")]:
            del sys.modules[name]

    def digest(self) -> str:
        return digest_of_code([self.load("Settle")()])


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Shop(tmp_path)
    yield made
    made.forget()


def test_the_same_code_has_the_same_digest(shop: Shop) -> None:
    assert shop.digest() == shop.digest()
    assert digest_of_code([shop.load("to_record")]) == shop.digest()


@pytest.mark.parametrize(
    "name", ["shop_flows.py", "shop/__init__.py", "shop/rates.py", "shop/tables.py", "shop/later.py", "shop/fees.py"]
)
def test_a_change_in_any_module_that_it_imports_is_another_version(shop: Shop, name: str) -> None:
    before = shop.digest()
    shop.write(name, f"{FILES[name]}# changed\n")
    assert shop.digest() != before


def test_what_it_does_not_import_is_not_part_of_it(shop: Shop) -> None:
    before = shop.digest()
    shop.write("shop/other.py", "OTHER = 2\n")
    shop.write("unrelated.py", "x = 1\n")
    assert shop.digest() == before


def test_what_is_installed_is_not_part_of_it() -> None:
    import numpy

    assert digest_of_code([numpy.array([1])]) == digest_of_code([]) == digest_of_code([Path("x")])


def test_what_the_user_says_counts_instead_of_a_digest(shop: Shop) -> None:
    handler, transform = shop.load("Settle")(), shop.load("to_record")
    digest = version_of(handler)
    assert len(digest) == 12
    assert version_of(handler, [transform]) == digest, "both stand in one module"
    handler.version = 7
    assert version_of(handler) == "7"
    assert version_of(handler, [transform]) == f"7+{digest}"
    transform.version = "b"
    assert version_of(handler, [transform]) == "7+b"


def test_code_of_a_folder_that_is_gone_is_forgotten_when_another_one_takes_its_name(shop: Shop, tmp_path: Path) -> None:
    gone, there = tmp_path / "gone", tmp_path / "there"
    for folder, amount in ((gone, 1), (there, 2)):
        folder.mkdir()
        (folder / "shop_drill.py").write_text(f"def amount():\n    return {amount}\n")
    find_code_beside(gone / "zerotail.yaml")
    assert load_object("shop_drill:amount", "a test")() == 1
    shutil.rmtree(gone)
    find_code_beside(there / "zerotail.yaml")
    amount = load_object("shop_drill:amount", "a test")
    assert amount() == 2
    assert digest_of_code([amount])
    assert str(gone) not in sys.path
