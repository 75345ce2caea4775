"""A signal that comes while a commit waits for the other site is heard behind the commit's answer, not before it: else
psycopg would cancel the wait, and what is then visible may be at one site only.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from support.pair import PATIENCE_SECONDS, Pair, next_number
from zerotail.deadline import Deadline, wait_until
from zerotail.postgres.connection import one_row

pytestmark = pytest.mark.servers

HELD_SECONDS = 1.0
PROGRAM = """
import signal, sys
from zerotail.cli.frame import _ENDINGS, _interrupt_once
from zerotail.postgres.transaction import Session

dsn, application, number, patience = sys.argv[1:]
for ending in _ENDINGS:
    signal.signal(ending, _interrupt_once)
session = Session(dsn, application, commits_locally=False, patience_seconds=float(patience) or None)
try:
    session.write(lambda connection: connection.execute("insert into truth values (%s)", (int(number),)))
except KeyboardInterrupt:
    print("interrupted")
"""
"""What a command does: its own handlers, one effect; with patience, a thread beside it that watches the clock."""


@pytest.mark.parametrize("patience", [0, 60], ids=["one thread", "two threads"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_a_commit_is_heard_behind_its_answer(pair: Pair, number: signal.Signals, patience: int) -> None:
    row = next_number()
    application = f"held back {row}"
    pair.freeze_standby()
    command = [sys.executable, "-c", PROGRAM, pair.primary_dsn, application, str(row), str(patience)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        backend = _backend_of(pair, application)
        pair.wait_until_waiting(backend)
        process.send_signal(number)
        pair.wait_until_waiting(backend, for_seconds=HELD_SECONDS)
        assert not pair.visible_on_primary(row)
        pair.thaw_standby()
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert said == "interrupted\n"
    assert pair.visible_on_primary(row)
    pair.wait_until_gate_open(pair.position())
    assert pair.on_standby(row)


def _backend_of(pair: Pair, application: str) -> int:
    query = "select coalesce(max(pid), 0) from pg_stat_activity where application_name = %s"
    return wait_until(
        "the program has a session",
        lambda: int(one_row(pair.control, query, (application,))[0]),
        Deadline.after(PATIENCE_SECONDS),
    )
