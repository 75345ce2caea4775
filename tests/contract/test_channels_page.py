"""The page about channels says what the package does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from zerotail.cli.frame import zerotail
from zerotail.postgres.receipt import receiver_schema
from zerotail.running.emitter import EXIT_CODES

pytestmark = pytest.mark.fast

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "channels.md").read_text()


def test_the_table_on_the_page_is_the_one_of_the_package() -> None:
    (shown,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert shown in receiver_schema()


def test_the_commands_on_the_page_have_the_options_that_it_shows() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("zerotail ")]
    assert len(lines) == 6
    for line in lines:
        _, group_name, name, *rest = shlex.split(line)
        group = zerotail.get_command(click.Context(zerotail), group_name)
        assert isinstance(group, click.Group)
        command = group.commands[name]
        assert command.make_context(name, rest).params


def test_the_exit_codes_of_the_emitter_are_on_both_pages() -> None:
    for code in EXIT_CODES.values():
        for page in (PAGE, (DOCS / "exit-codes.md").read_text()):
            assert re.search(rf"^\| {code} \|", page, re.MULTILINE)
