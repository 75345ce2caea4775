"""Bring a database in as a standby, by a fresh copy of the primary.

A fresh copy and not `pg_rewind`: that copies the other side's settings too, and can report success for a server that
then never follows. The copy waits for nobody, should it be promoted one day.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zerotail.core.standby import slot_of
from zerotail.deadline import Deadline
from zerotail.errors import Unfinished
from zerotail.postgres.connection import session


@dataclass(frozen=True, slots=True)
class Programs:
    """PostgreSQL's programs and how to call them: as root through a program that puts on another user."""

    folder: Path
    as_user: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None

    def command(self, name: str, *arguments: str | Path) -> list[str]:
        """The words that call one of the programs."""
        return [*self.as_user, str(self.folder / name), *(str(argument) for argument in arguments)]

    def run(self, name: str, *arguments: str | Path, deadline: Deadline) -> None:
        """Call one of the programs and wait for it; `Unfinished` with its last words when it fails."""
        command = self.command(name, *arguments)
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                env=self.environment,
                timeout=max(deadline.seconds_left, 0.1),
                check=False,
                cwd="/",
            )
        except subprocess.TimeoutExpired as error:
            raise Unfinished(f"{name} did not finish in time.", code="ZT305") from error
        if done.returncode != 0:
            raise Unfinished(f"{name} failed: {_last_line(done.stderr or done.stdout)}", code="ZT305")


def copy_primary(
    programs: Programs, source_dsn: str, data: Path, standby: str, deadline: Deadline, *, sync: bool = True
) -> None:
    """Fill the empty folder `data` with a copy of the primary that follows it under the name `standby`.

    The slot that keeps the log for it has that name, too, as far as a slot may have it.

    Without `sync` the copy is not forced to disk: enough where only processes are killed, never the machine.
    """
    slot = slot_of(standby)
    _drop_idle_slot(source_dsn, slot, deadline)
    programs.run(
        "pg_basebackup",
        *("-D", data, "-X", "stream", "-c", "fast", "-R", "-C", "-S", slot),
        *(() if sync else ("--no-sync",)),
        *("-d", f"{source_dsn} application_name={standby}"),
        deadline=deadline,
    )
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write("synchronous_standby_names = ''\n")


def _drop_idle_slot(source_dsn: str, slot: str, deadline: Deadline) -> None:
    """A slot left by an earlier life of this standby would hold back the primary's log for nobody."""
    query = b"select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s and not active"
    with session(source_dsn, deadline) as primary:
        primary.execute(query, (slot,))


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]


def server_command(programs: Programs, data: Path, settings: Mapping[str, str]) -> Sequence[str]:
    """The words that start a server on `data`; `settings` win over the files in it."""
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return programs.command("postgres", "-D", data, *options)
