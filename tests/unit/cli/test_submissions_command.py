"""`zerotail submissions set-aside`, called wrongly: one sentence, exit 2, before any database is asked."""

from __future__ import annotations

import pytest

from support.command import call

pytestmark = pytest.mark.fast
NOWHERE = ("--dsn", "host=127.0.0.1 port=1 dbname=none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("drop", "--by", "anna", *NOWHERE), "Missing argument"),
        (("drop", "0", "--by", "anna", *NOWHERE), "0 is not in the range"),
        (("drop", "x", "--by", "anna", *NOWHERE), "'x' is not a valid integer"),
        (("drop", str(2**63), "--by", "anna", *NOWHERE), "is not in the range"),
        (("drop", "1", *NOWHERE), "Missing option '--by'"),
        (("drop", "1", "--by", "", *NOWHERE), "--by takes 1 to 1000 bytes of UTF-8"),
        (("drop", "1", "--by", "\udcff", *NOWHERE), "--by takes 1 to 1000 bytes of UTF-8"),
        (("list", "--site", "east", *NOWHERE), "--dsn names the database itself"),
        (("resubmit", "1", "--by", "anna"), "Missing option '--id'"),
        (("resubmit", "1", "--id", "", "--by", "anna"), "--id takes 1 to 1000 bytes of UTF-8"),
        (("resubmit", "1", "--id", "é" * 501, "--by", "anna"), "--id takes 1 to 1000 bytes of UTF-8"),
        (("resubmit", "1", "--id", "a", "--partition", "-1", "--by", "anna"), "-1 is not in the range"),
        (("resubmit", "1", "--id", "a", "--by", "anna", *NOWHERE), "No such option"),
        (("resubmit", "1", "--id", "a", "--by", "anna", "--config", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_a_wrong_call_exits_with_2_and_one_message(arguments: tuple[str, ...], message: str) -> None:
    said = call("submissions", "set-aside", *arguments)
    assert (said.code, said.out) == (2, "")
    assert message in said.err


def test_a_database_that_is_not_there_is_named() -> None:
    said = call("submissions", "set-aside", "drop", "1", "--by", "anna", *NOWHERE)
    assert said.code == 4
    assert said.err.startswith("error ZT301: the database of 127.0.0.1:1")
