"""No quantity stands in a page without a source: a stored result, what a command printed, or a line in a list."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

import pytest

from support.documents import PAGES, ROOT, name_of, text_of
from support.outputs import Shown, commit_of, find_invented, outputs_in
from support.quantities import LIST, find_faults, listed, quantities_in
from zerotail.bench.published import PUBLISHED

pytestmark = pytest.mark.fast

_MADE_WHOLE = {one.page for one in PUBLISHED.values()} - {"docs/benchmarks.md"}
LOOKED_AT = [page for page in [ROOT / "CHANGELOG.md", *PAGES] if name_of(page) not in _MADE_WHOLE]
SHOWN = [(page, shown) for page in LOOKED_AT for shown in outputs_in(text_of(page))]


def test_every_quantity_of_a_page_is_from_a_result_or_is_listed_as_none_of_ours() -> None:
    known = listed()
    faults = [fault for page in LOOKED_AT for fault in find_faults(name_of(page), text_of(page), known)]
    faults += [f"{page} is listed, and is no page" for page in sorted(known.keys() - {*map(name_of, LOOKED_AT)})]
    how = f"a measured one gets its mark (decision 0080); a limit, a sample or a version goes into {name_of(LIST)}"
    assert not faults, "\n".join([*faults, how])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("took 1.5 s, at most 2.3", ["1.5 s", "2.3"]),
        ("33,000/s at 10 MB and 3%", ["33,000/s", "10 MB", "3%"]),
        ("17 to 19 µs, 1, 2 and 4 ms; 5–7 MB", ["17", "19 µs", "1", "2", "4 ms", "5", "7 MB"]),
        ("| `put` | 3,915 | 12 |", ["3,915"]),
        ("```\nwest is active after 0.2 s\n```", ["0.2 s"]),
        ("1.5 s<!-- takeover: takeover_seconds_median -->, [more](page-1.5.md), 4.3.1, R2, 127.0.0.1", []),
        ("<!-- bench flow: made by the command -->\n1.5 s\n<!-- end of bench flow -->", []),
        ("<!-- printed: docs/output/demo.txt -->\n```console\n 1.5 s\n```\n", []),
    ],
)
def test_a_quantity_is_found_where_it_has_no_source(text: str, found: list[str]) -> None:
    assert quantities_in(text) == found


def test_a_quantity_that_is_changed_and_one_that_is_gone_are_noticed() -> None:
    known = {"a.md": Counter(["1.5 s", "4 MB"])}
    assert find_faults("a.md", "1.5 s, 4 MB", known) == []
    assert find_faults("a.md", "1.2 s, 4 MB", known) == [
        "a.md states 1.2 s, which is in no list",
        "a.md is listed with 1.5 s, and does not state it",
    ]
    assert find_faults("b.md", "1.2 s", known) == ["b.md states 1.2 s, which is in no list"]
    assert find_faults("docs/decisions/0001-a.md", "1.2 s", known) == []


def test_what_a_page_shows_as_output_was_printed_by_a_commit_of_this_history() -> None:
    assert {name_of(page) for page, _ in SHOWN} >= {"README.md"}
    faults = []
    for page, shown in SHOWN:
        printed = (ROOT / shown.file).read_text(encoding="utf-8")
        faults += [
            f"{name_of(page)}: {shown.file} has not printed, or not there: {line}"
            for line in find_invented(shown, printed)
        ]
        commit = commit_of(printed)
        leads = ["git", "-C", str(ROOT), "merge-base", "--is-ancestor", str(commit), "HEAD"]
        if commit is None or subprocess.run(leads, capture_output=True, check=False).returncode:
            faults.append(f"{shown.file} names no commit that leads to HEAD in its first line: {commit}")
    assert not faults, "\n".join(faults)


def test_every_block_of_the_readme_with_output_says_where_it_is_from() -> None:
    text = text_of(ROOT / "README.md")
    blocks = re.findall(r"^```console\n", text, re.MULTILINE)
    assert len(blocks) == len(outputs_in(text)) > 0


def test_an_invented_line_is_found() -> None:
    printed = "# by commit " + "a" * 40 + "\n$ make demo\n 1.5 s  west is active\n 2.0 s  east: pids 1, 2, 3\nPASSED\n"
    assert commit_of(printed) == "a" * 40
    assert commit_of("# by nobody\n") is None
    assert find_invented(Shown("", ("$ make demo", "…", " 2.0 s  east: pids 1, …", "", "PASSED")), printed) == []
    assert find_invented(Shown("", (" 1.2 s  west is active",)), printed) == [" 1.2 s  west is active"]
    assert find_invented(Shown("", ("PASSED", "$ make demo")), printed) == ["$ make demo"]
