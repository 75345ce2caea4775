"""What a database itself wrote down about a session: was it inside COMMIT when its client died, and of what?

A kill point says where a client believed to be. The server knows better: with `logging_backends` each line of its log
names the session, its virtual transaction and its transaction id, which is 0 as long as nothing was written, and says
when a statement began and how long it took. `require_died_in_commit` reads all of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from zerotail.deadline import Deadline, wait_until
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import connect, one_row

JOURNAL = ("update zerotail.head", "insert into zerotail.segment")
"""What a transaction runs that writes the journal."""
LANE = ("update zerotail.lane",)
"""What one runs that writes down how far a lane's sender has come."""
CLAIM = ("insert into zerotail.lane",)
"""What one runs that makes somebody the sender of a lane."""
STATEMENTS_LOGGED = (
    "-c log_statement=all -c log_min_duration_statement=10 -c log_parameter_max_length=0 -c log_disconnections=on"
)
"""The environment variable `PGOPTIONS` of whoever is to be killed."""
_PREFIX = "%n|%c|%p|%v|%x|"
_ENTRY = re.compile(r"(\d+\.\d+)\|([0-9a-f.]+)\|(\d+)\|([\d/]*)\|(\d+)\|\w+: +(.*)", re.DOTALL)
_STATEMENT = re.compile(r"(?:statement|execute [^:]*): +(.*)", re.DOTALL)
_PATIENCE_SECONDS = 20.0
_ROUNDED_SECONDS = 0.002
"""The log counts whole milliseconds."""


@dataclass(frozen=True, slots=True)
class Death:
    """What a process noted of itself in the moment in which it killed itself."""

    pid: int
    command: str
    at: float
    effect: str
    backend: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log; a statement may have many lines."""

    at: float
    session: str
    backend: int
    transaction: str
    xid: int
    text: str

    @property
    def statement(self) -> str:
        """What the server was told to do, in small letters and on one line; empty if this is about something else."""
        found = _STATEMENT.fullmatch(self.text)
        return " ".join(found[1].lower().split()) if found else ""


@contextmanager
def logging_backends(lab: Layout, site: str) -> Iterator[Path]:
    """The log of a site's database, each of its lines saying of which session and transaction it is."""
    with connect(dsn(lab.database(site)), Deadline.after(_PATIENCE_SECONDS)) as control:

        def in_force(prefix: str) -> bool:
            return bool(one_row(control, "show log_line_prefix")[0] == prefix)

        before = str(one_row(control, "show log_line_prefix")[0])
        control.execute(f"alter system set log_line_prefix = '{_PREFIX}'".encode())
        control.execute("select pg_reload_conf()")
        wait_until("the log says whose its lines are", lambda: in_force(_PREFIX), Deadline.after(_PATIENCE_SECONDS))
    try:
        yield lab.folder_of(lab.database(site).part) / "log"
    finally:
        with connect(dsn(lab.database(site)), Deadline.after(_PATIENCE_SECONDS)) as control:
            control.execute("alter system reset log_line_prefix")
            control.execute("select pg_reload_conf()")
            wait_until("the log is as before", lambda: in_force(before), Deadline.after(_PATIENCE_SECONDS))


def read_deaths(folder: Path) -> list[Death]:
    """Who died inside a COMMIT, by the notes in the folder of the kill points."""
    return [Death(**json.loads(note.read_text())) for note in sorted(folder.glob("in-commit-of-*.done"))]


def require_died_in_commit(death: Death, log: Path, wrote: Sequence[str]) -> None:
    """The server's log shows that this client's last word was the COMMIT of a transaction that had run the statements
    `wrote`, and that the server was still at it when the client died.
    """
    wait_until(
        f"the log of backend {death.backend} ends",
        lambda: any("disconnection" in entry.text for entry in _session(death, log)),
        Deadline.after(_PATIENCE_SECONDS),
    )
    entries = _session(death, log)
    *_, (place, commit) = [(place, entry) for place, entry in enumerate(entries) if entry.statement]
    said = f"{death} and its last word in the log, {commit}"
    assert commit.statement.startswith("commit"), f"{said}: not a COMMIT"
    assert commit.xid, f"{said}: its transaction had written nothing"
    statements = [entry.statement for entry in entries if entry.transaction == commit.transaction and entry.statement]
    for one in wrote:
        assert any(statement.startswith(one) for statement in statements), f"{said}: no {one!r} among {statements}"
    ended = [entry for entry in entries[place:] if entry.text.startswith("duration:")]
    assert ended, f"{said}: it never ended"
    inside = commit.at - _ROUNDED_SECONDS <= death.at <= ended[0].at + _ROUNDED_SECONDS
    assert inside, f"{said}: it took until {ended[0].at}"


def _session(death: Death, log: Path) -> list[Entry]:
    """The entries of the session that had this backend last before the death."""
    entries = [entry for entry in read_entries(log) if entry.backend == death.backend]
    sessions = [entry.session for entry in entries if entry.at <= death.at + _ROUNDED_SECONDS]
    return [entry for entry in entries if sessions and entry.session == sessions[-1]]


def read_entries(log: Path) -> list[Entry]:
    """Every entry that has our prefix."""
    entries: list[Entry] = []
    for line in log.read_text(errors="replace").splitlines():
        found = _ENTRY.fullmatch(line)
        if found:
            at, session, backend, transaction, xid, text = found.groups()
            entries.append(Entry(float(at), session, int(backend), transaction, int(xid), text))
        elif line.startswith("\t") and entries:
            entries[-1] = replace(entries[-1], text=f"{entries[-1].text}\n{line}")
    return entries
