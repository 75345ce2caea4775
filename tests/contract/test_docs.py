"""What documents and messages say can be typed; what pages link to is there; an error number is explained once."""

from __future__ import annotations

import ast
import re

import pytest

from support.documents import (
    FENCED,
    PAGES,
    ROOT,
    SOURCES,
    anchors_of,
    code_of,
    find_command_fault,
    find_texts,
    name_of,
    text_of,
)
from zerotail.audit.facts import ConsumerFacts, ProducerFacts, SparkFacts
from zerotail.audit.rules import RULES

pytestmark = pytest.mark.fast

_TYPED = re.compile(r"^(?:\$ )?zerotail ([a-z][^\n#|]*)", re.MULTILINE)
_INLINE = re.compile(r"`zerotail ([a-z][^`\n]*)`")
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
_TOLD = re.compile(r"(?:`|Example:  )zerotail ([a-z][^`\n#|]*)")


def find_commands(text: str) -> list[str]:
    """The commands of a page, without `zerotail` in front."""
    typed = [line for block in FENCED.findall(text) for line in _TYPED.findall(block)]
    return [*typed, *_INLINE.findall(FENCED.sub("", text))]


def test_every_command_in_the_documents_exists() -> None:
    faults = [
        f"{name_of(page)}: {fault}"
        for page in PAGES
        for written in find_commands(text_of(page))
        if (fault := find_command_fault(written))
    ]
    assert not faults, "\n".join(faults)


def test_every_command_that_a_message_or_an_example_tells_to_type_exists() -> None:
    faults = []
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        if "zerotail " not in text:
            continue
        tree = ast.parse(text)
        told = [written for message in find_texts(tree) for written in _TOLD.findall(message)]
        told += [
            line.removeprefix("zerotail ")
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword) and node.arg in {"tries", "epilog"}
            for line in find_texts(node.value)
            if line.startswith("zerotail ")
        ]
        faults += [f"{name_of(source)}: {fault}" for written in told if (fault := find_command_fault(written))]
    assert not faults, "\n".join(faults)


def test_every_link_between_the_documents_leads_somewhere() -> None:
    faults = []
    for page in PAGES:
        for target, anchor in _LINK.findall(FENCED.sub("", text_of(page))):
            where = page.parent / target if target else page
            if not where.exists():
                faults.append(f"{name_of(page)} links to {target}, which is not there")
            elif anchor and anchor not in anchors_of(text_of(where)):
                faults.append(f"{name_of(page)} links to {target}#{anchor}: no heading there gives that")
    assert not faults, "\n".join(faults)


def test_every_page_is_in_the_index() -> None:
    listed = {target for target, _ in _LINK.findall(text_of(ROOT / "docs" / "README.md"))}
    assert {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"} <= listed


def test_every_error_number_is_explained_and_means_one_thing() -> None:
    explained = re.findall(r"^\| (ZT\d{3}) \|", text_of(ROOT / "docs" / "errors.md"), re.MULTILINE)
    assert len(explained) == len(set(explained))
    used = {number for source in SOURCES for number in re.findall(r"\bZT\d{3}\b", source.read_text(encoding="utf-8"))}
    assert used == set(explained)


def test_the_audit_has_as_many_rules_as_pages_say() -> None:
    texts = sum(rule.kind in (ProducerFacts, ConsumerFacts, SparkFacts) for rule in RULES)
    servers = len(RULES) - texts
    numbers = {"README.md": [servers, texts], "docs/audit.md": [len(RULES), servers, texts]}
    for page, expected in numbers.items():
        assert [int(one) for one in re.findall(r"\b(\d+) (?:rules|about)\b", text_of(ROOT / page))] == expected, page


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    faults = [
        f"{name_of(page)}: there is no make {target}"
        for page in PAGES
        for code in code_of(text_of(page))
        for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", code)
        if target not in targets
    ]
    assert not faults, "\n".join(faults)
