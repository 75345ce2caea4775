"""The documents as a reader sees them: what is printed as code, which commands it types, which files it names.

Everything here answers with what is wrong as sentences, so that one run of a test lists all of it.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import click

from support.tiers import TIERS
from zerotail.cli.frame import zerotail

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_-]*$|…")
_UNKNOWN = "…"
"""What an f-string fills in."""


@cache
def text_of(page: Path) -> str:
    """A page, read once."""
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    """A page by its path in the repository."""
    return str(page.relative_to(ROOT))


def code_of(text: str) -> list[str]:
    """What is printed as code: the lines of blocks, and what stands between backticks."""
    blocks = [line.strip() for block in FENCED.findall(text) for line in block.splitlines()[1:-1]]
    return blocks + INLINE.findall(FENCED.sub("", text))


def anchors_of(text: str) -> set[str]:
    """Where a link into a page can lead, by GitHub's rule for headings."""
    headings = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text)]
    return {*headings, *re.findall(r'<a id="([^"]+)"', text)}


def find_command_fault(written: str) -> str | None:
    """What is wrong with a command, without `zerotail` in front; None when it can be typed."""
    command: click.Command = zerotail
    options = set()
    for word in shlex.split(written.split("    ", maxsplit=1)[0].strip().rstrip(".,;:")):
        if word.startswith("--"):
            options.add(word.partition("=")[0])
        elif isinstance(command, click.Group) and _UNKNOWN in word:
            return None
        elif isinstance(command, click.Group) and not _PLACEHOLDER.match(word):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"`zerotail {written}`: there is no {word}"
            command = found
    known = {name for parameter in command.params for name in parameter.opts} | {"--help", "--debug"}
    return None if options <= known else f"`zerotail {written}` takes {sorted(known)}"


def find_texts(tree: ast.AST) -> Iterator[str]:
    """Every text in a piece of code, with an ellipsis where a value is filled in."""
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else _UNKNOWN for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value


@cache
def files_of_tests() -> dict[str, list[Path]]:
    """Test modules by their names."""
    found: dict[str, list[Path]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        found.setdefault(path.name, []).append(path)
    return found


@cache
def tiers_in(path: Path) -> dict[str, list[frozenset[str]]]:
    """The tests of a module with the tiers that each carries: by the module's mark, its own, and those of its cases."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    of_all = frozenset(
        tier
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == "pytestmark" for one in node.targets)
        for tier in _tiers_of([node.value])
    )
    makers = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {
        node.name: _variants(of_all | _tiers_of(node.decorator_list), [*_written_out(node.decorator_list, makers)])
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _tiers_of(marks: Sequence[ast.expr]) -> frozenset[str]:
    """The tiers among marks themselves."""
    bare = [one for mark in marks for one in (mark.elts if isinstance(mark, ast.List | ast.Tuple) else [mark])]
    return frozenset(mark.attr for mark in bare if isinstance(mark, ast.Attribute) and mark.attr in TIERS)


def _written_out(decorators: Sequence[ast.expr], makers: Mapping[str, ast.FunctionDef]) -> Iterator[ast.AST]:
    """Decorators, and for one that a function of the module makes that function."""
    for one in decorators:
        yield one
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in makers:
            yield makers[one.func.id]


def _variants(tiers: frozenset[str], decorators: Sequence[ast.AST]) -> list[frozenset[str]]:
    """The tiers of each group of cases, where cases carry marks of their own."""
    cases = [
        _tiers_of([node.value])
        for decorator in decorators
        for node in ast.walk(decorator)
        if isinstance(node, ast.keyword) and node.arg == "marks"
    ]
    return [tiers | case for case in cases] or [tiers]
