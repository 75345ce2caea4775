"""What the documents say can be typed; what they link to is there; every error number is explained once."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from zerotail.cli.frame import zerotail

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)
SOURCES = sorted((ROOT / "src").rglob("*.py"))
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"^(?:\$ )?zerotail ([a-z][^\n#|]*)", re.MULTILINE)
_INLINE = re.compile(r"`zerotail ([a-z][^`\n]*)`")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_-]*$|…")


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_command_in_the_documents_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    typed = [line for block in _FENCED.findall(text) for line in _TYPED.findall(block)]
    for written in [*typed, *_INLINE.findall(_FENCED.sub("", text))]:
        words = shlex.split(written.split("    ")[0].strip().rstrip(".,;:"))
        command: click.Command = zerotail
        options = set()
        for word in words:
            if word.startswith("--"):
                options.add(word.partition("=")[0])
            elif isinstance(command, click.Group) and not _PLACEHOLDER.match(word):
                found = command.get_command(click.Context(command), word)
                assert found is not None, f"{page.name} says `zerotail {written}`, and there is no {word}"
                command = found
        known = {name for parameter in command.params for name in parameter.opts} | {"--help", "--debug"}
        assert options <= known, f"{page.name} says `zerotail {written}`, which takes {sorted(known)}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_between_the_documents_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_error_number_is_explained_and_means_one_thing() -> None:
    explained = re.findall(r"^\| (ZT\d{3}) \|", (ROOT / "docs" / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(explained) == len(set(explained))
    used = {number for source in SOURCES for number in re.findall(r"\bZT\d{3}\b", source.read_text(encoding="utf-8"))}
    assert used == set(explained)


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        written = set(re.findall(r"`?\bmake ([a-z-]+)`?", page.read_text(encoding="utf-8")))
        said = {word for word in written if f"`make {word}" in page.read_text() or f"\nmake {word}" in page.read_text()}
        assert said <= targets, f"{page.name}: {said - targets}"
