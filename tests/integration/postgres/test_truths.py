"""What PostgreSQL really does while a commit waits for the other site, row by row.

In every row the gate answers no while the other site lacks the row, and yes after it has caught up: the whole product
rests on that, and on no other sign of success.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest

from support.healing import verify_life
from support.output import wait_for_line
from support.pair import INSERT, PATIENCE_SECONDS, Pair, control_session, next_number
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.fault import kill_target, start_target
from zerotail.postgres.synchronous import set_synchronous_standby

pytestmark = pytest.mark.servers


@dataclass(frozen=True)
class Frozen:
    """A standby that takes no log in: wholly frozen, or answering questions while its receiver is frozen."""

    pair: Pair
    wholly: bool

    @contextmanager
    def standby(self) -> Iterator[None]:
        """Frozen for the length of the block."""
        self.pair.freeze_standby() if self.wholly else self.pair.freeze_receiver()
        try:
            yield
        finally:
            self.pair.thaw_standby()

    def check_gate_says_no(self, number: int) -> None:
        """The other site lacks the row, and the gate says so."""
        assert not self.pair.gate(self.pair.position())
        if not self.wholly:
            assert not self.pair.on_standby(number)


@pytest.fixture(params=["wholly frozen", "receiver frozen"])
def frozen(request: pytest.FixtureRequest, pair: Pair) -> Frozen:
    """The two ways in which the other site can lack a row."""
    return Frozen(pair, request.param == "wholly frozen")


def check_gate_follows_the_standby(pair: Pair, number: int) -> None:
    """With the standby just thawed: the gate opens, and when it is open the row is there."""
    pair.wait_until_gate_open(pair.position())
    assert pair.visible_on_primary(number)
    wait_until("the standby shows the row", lambda: pair.on_standby(number), Deadline.after(PATIENCE_SECONDS))


def test_statement_timeout_does_not_fire_while_a_commit_waits(pair: Pair, frozen: Frozen) -> None:
    with frozen.standby():
        commit = pair.waiting_commit("set statement_timeout = '200ms'")
        pair.wait_until_waiting(commit.backend, for_seconds=1.0)
        assert commit.waits
        assert not pair.visible_on_primary(commit.number)
        frozen.check_gate_says_no(commit.number)
    assert commit.wait().returned
    check_gate_follows_the_standby(pair, commit.number)


def test_a_cancelled_wait_returns_success_for_a_row_that_the_other_site_lacks(pair: Pair, frozen: Frozen) -> None:
    with frozen.standby():
        commit = pair.waiting_commit()
        pair.control.execute("select pg_cancel_backend(%s)", (commit.backend,))
        outcome = commit.wait()
        assert outcome.returned
        assert outcome.error is None
        assert outcome.notices == ("01000",)
        assert pair.visible_on_primary(commit.number)
        frozen.check_gate_says_no(commit.number)
    check_gate_follows_the_standby(pair, commit.number)


def test_a_terminated_backend_leaves_its_row_visible(pair: Pair, frozen: Frozen) -> None:
    with frozen.standby():
        commit = pair.waiting_commit()
        pair.control.execute("select pg_terminate_backend(%s)", (commit.backend,))
        outcome = commit.wait()
        assert isinstance(outcome.error, psycopg.OperationalError)
        assert "57P01" in outcome.notices
        assert pair.visible_on_primary(commit.number)
        frozen.check_gate_says_no(commit.number)
    check_gate_follows_the_standby(pair, commit.number)


_CLIENT = """
import sys, psycopg
session = psycopg.connect(sys.argv[1], autocommit=True)
session.add_notice_handler(lambda notice: print("notice", notice.sqlstate, flush=True))
print("backend", session.info.backend_pid, flush=True)
with session.transaction():
    session.execute(sys.argv[2], (int(sys.argv[3]),))
print("committed", flush=True)
"""


@contextmanager
def client_process(pair: Pair, number: int) -> Iterator[subprocess.Popen[str]]:
    """A client in a process of its own, waiting in its commit."""
    arguments = [sys.executable, "-c", _CLIENT, pair.primary_dsn, INSERT, str(number)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        try:
            backend = int(wait_for_line(client, "backend").split()[1])
            pair.wait_until_waiting(backend)
            yield client
        finally:
            client.kill()


def test_a_killed_client_leaves_the_backend_waiting_and_the_row_invisible(pair: Pair, frozen: Frozen) -> None:
    number = next_number()
    with frozen.standby():
        with client_process(pair, number) as client:
            client.kill()
            client.wait(PATIENCE_SECONDS)
        waiting = pair.control.execute("select count(*) from pg_stat_activity where wait_event = 'SyncRep'").fetchone()
        assert waiting == (1,)
        assert not pair.visible_on_primary(number)
        frozen.check_gate_says_no(number)
    wait_until("the row appears", lambda: pair.visible_on_primary(number), Deadline.after(PATIENCE_SECONDS))
    check_gate_follows_the_standby(pair, number)


def test_ctrl_c_in_a_commit_raises_and_leaves_the_row_visible(pair: Pair, frozen: Frozen) -> None:
    number = next_number()
    with frozen.standby():
        with client_process(pair, number) as client:
            client.send_signal(signal.SIGINT)
            said, complained = client.communicate(timeout=PATIENCE_SECONDS)
            assert "notice 01000" in said
            assert "committed" not in said
            assert "KeyboardInterrupt" in complained
        assert pair.visible_on_primary(number)
        frozen.check_gate_says_no(number)
    check_gate_follows_the_standby(pair, number)


def test_emptying_the_list_of_standbys_releases_waiters_with_success_and_no_warning(pair: Pair, frozen: Frozen) -> None:
    with frozen.standby():
        commit = pair.waiting_commit()
        set_synchronous_standby(pair.control, None)
        outcome = commit.wait()
        assert outcome.returned
        assert outcome.notices == ()
        assert pair.visible_on_primary(commit.number)
        frozen.check_gate_says_no(commit.number)
    check_gate_follows_the_standby(pair, commit.number)


def test_a_restarted_primary_shows_rows_that_the_other_site_lacks(pair: Pair, frozen: Frozen) -> None:
    with frozen.standby():
        commit = pair.waiting_commit()
        assert kill_target(pair.layout, "east.postgres").bit
        assert isinstance(commit.wait().error, psycopg.OperationalError)
        assert start_target(pair.layout, "east.postgres").bit
        with control_session(pair.layout) as control:
            restarted = Pair(pair.layout, control)
            assert restarted.visible_on_primary(commit.number)
            Frozen(restarted, frozen.wholly).check_gate_says_no(commit.number)
    verify_life(pair.layout)
    with control_session(pair.layout) as control:
        check_gate_follows_the_standby(Pair(pair.layout, control), commit.number)


def test_an_error_from_commit_is_no_abort(pair: Pair) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace makes the disk fail here, and it is not installed: apt-get install strace")
    with psycopg.connect(pair.primary_dsn, autocommit=True) as session:
        session.execute("set synchronous_commit = local")
        arguments = [strace, "-f", "-q", "-e", "inject=fdatasync:error=EIO", "-p", str(session.info.backend_pid)]
        number = next_number()
        with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as tracer:
            try:
                tracer_has_attached(session.info.backend_pid)
                with pytest.raises(psycopg.OperationalError):
                    session.execute(INSERT, (number,))
            finally:
                tracer.kill()
    pair.wait_until_sessions_are_ended()
    with control_session(pair.layout) as control:
        recovered = Pair(pair.layout, control)
        assert recovered.visible_on_primary(number)
        check_gate_follows_the_standby(recovered, number)


def tracer_has_attached(pid: int) -> None:
    """Return when the process says that somebody traces it."""

    def traced() -> bool:
        with open(f"/proc/{pid}/status") as status:
            return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status)

    wait_until("strace is attached", traced, Deadline.after(PATIENCE_SECONDS))


def test_any_session_may_commit_without_waiting(pair: Pair, frozen: Frozen) -> None:
    with frozen.standby():
        commit = pair.commit("set synchronous_commit = local")
        outcome = commit.wait()
        assert outcome.returned
        assert outcome.notices == ()
        assert pair.visible_on_primary(commit.number)
        frozen.check_gate_says_no(commit.number)
    check_gate_follows_the_standby(pair, commit.number)
