"""The evidence that a client died inside the COMMIT that was meant: whatever else may have happened does not pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from support.backend_log import JOURNAL, STATEMENTS_LOGGED, Death, logging_backends, require_died_in_commit
from support.journal import SETTLE
from zerotail.lab.layout import Layout

pytestmark = pytest.mark.servers

LOOK, WRITE = "select 1", "update zerotail.producer set name = name"
HEAD = "update zerotail.head set segment = segment"
SEGMENT = f"insert into zerotail.segment select * from zerotail.segment where stage = '{SETTLE}' on conflict do nothing"
SLOW = "set local commit_delay = 100000; set local commit_siblings = 0"


@pytest.fixture
def log(lab: Layout) -> Iterator[Path]:
    """The log of the east's database."""
    with logging_backends(lab, "east") as path:
        yield path


@pytest.mark.parametrize(
    ("statements", "lasts", "says"),
    [
        ([HEAD, SEGMENT, "commit"], True, None),
        ([HEAD, SEGMENT, "commit"], False, "it never ended|it took until"),
        ([HEAD, SEGMENT], False, "not a COMMIT"),
        ([LOOK, "commit"], False, "had written nothing"),
        ([WRITE, "commit"], True, "no 'update zerotail.head'"),
        ([HEAD, "commit"], True, "no 'insert into zerotail.segment'"),
    ],
    ids=["this is it", "the answer was there", "before COMMIT", "a read", "another write", "half of it"],
)
def test_only_the_commit_that_was_meant_passes_for_it(
    database: str, log: Path, statements: list[str], lasts: bool, says: str | None
) -> None:
    with closing(psycopg.connect(database, autocommit=True, options=STATEMENTS_LOGGED)) as session:
        session.execute("set synchronous_commit = local")
        session.execute("begin")
        if lasts:
            session.execute(SLOW)
        for statement in statements[:-1]:
            session.execute(statement.encode())
        began = time.time()
        session.execute(statements[-1].encode())
        at = (began + time.time()) / 2 if lasts else time.time() + 1
        death = Death(0, "none", at, "none", session.info.backend_pid)
    if says is None:
        require_died_in_commit(death, log, JOURNAL)
    else:
        with pytest.raises(AssertionError, match=says):
            require_died_in_commit(death, log, JOURNAL)
