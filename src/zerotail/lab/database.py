"""One PostgreSQL of a lab: created empty or as a copy, started, its DSNs.

PostgreSQL refuses to run as root. As root we put on the user `postgres`, else `nobody`, and keep one privilege, passing
file permissions: so a lab works below a folder that only root may enter, such as root's home. Ports and tuning are
given on the command line, hence a copied data folder needs no editing.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from functools import cache
from pathlib import Path

from zerotail.deadline import Deadline
from zerotail.errors import Refused
from zerotail.lab.layout import DatabasePlace, Layout
from zerotail.lab.process import Command, marked_environment, start
from zerotail.machine import find_postgres_programs
from zerotail.postgres.rejoin import Programs, copy_primary, server_command

SUPERUSER = "postgres"
_USERS = ("postgres", "nobody")
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "max_wal_senders": "10",
    "max_slot_wal_keep_size": "4GB",
    "shared_buffers": "128MB",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "200ms",
    "wal_sender_timeout": "10s",
    "wal_receiver_timeout": "10s",
    "logging_collector": "off",
}


def programs_for(layout: Layout, part: str) -> Programs:
    """PostgreSQL's programs, marked as belonging to a part; `Refused` when there are none."""
    folder = find_postgres_programs(layout.bindir)
    if folder is None:
        place = f" in {layout.bindir}" if layout.bindir else ""
        raise Refused(
            f"PostgreSQL's programs are not there{place}.",
            code="ZT105",
            tries=["pip install 'zerotail[lab]'", "zerotail lab up --bindir /usr/lib/postgresql/15/bin"],
        )
    return Programs(folder, put_on_user(), marked_environment(layout.path, part))


@cache
def put_on_user() -> tuple[str, ...]:
    """The words before a command that must not run as root; empty when we are not root."""
    if os.geteuid() != 0:
        return ()
    user = database_user()
    plain = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
    # access(2) looks at permitted privileges only under this secure bit.
    passing = (
        *plain,
        "--securebits=+no_setuid_fixup",
        "--inh-caps=-all,+dac_override",
        "--ambient-caps=+dac_override",
        "--bounding-set=-all,+dac_override",
    )
    allowed = subprocess.run([*passing, "true"], capture_output=True, check=False).returncode == 0
    return passing if allowed else plain


def database_user() -> pwd.struct_passwd:
    """The user that PostgreSQL runs as when we are root."""
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Refused(f"PostgreSQL does not run as root, and none of the users {', '.join(_USERS)} exists.", code="ZT106")


def create_database(layout: Layout, place: DatabasePlace, deadline: Deadline) -> None:
    """A new, empty database."""
    data = _new_data_folder(layout, place)
    programs_for(layout, place.part).run(
        "initdb",
        *("-D", data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale", "--data-checksums", "--no-sync"),
        deadline=deadline,
    )


def copy_database(layout: Layout, place: DatabasePlace, source_dsn: str, deadline: Deadline) -> None:
    """A standby of the primary at `source_dsn`, named after its site."""
    data = _new_data_folder(layout, place)
    copy_primary(programs_for(layout, place.part), source_dsn, data, place.site, deadline, sync=False)


def _new_data_folder(layout: Layout, place: DatabasePlace) -> Path:
    data = layout.folder_of(place.part) / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True, mode=0o700)
    if os.geteuid() == 0:
        user = database_user()
        os.chown(data, user.pw_uid, user.pw_gid)
    return data


def start_database(layout: Layout, place: DatabasePlace) -> int:
    """Start the server; answers its pid."""
    folder = layout.folder_of(place.part)
    # Left by a killed server; we know that none of this lab's runs, and its pid may be somebody else's by now.
    (folder / "data" / "postmaster.pid").unlink(missing_ok=True)
    settings = {**_SETTINGS, "port": str(place.port), "cluster_name": place.part}
    arguments = server_command(programs_for(layout, place.part), folder / "data", settings)
    return start(layout.path, Command(place.part, arguments, folder))


def dsn(place: DatabasePlace, *, seen_from: str | None = None) -> str:
    """How to reach a database: from its own site directly, from the other one through the link."""
    port = place.port if seen_from in (None, place.site) else place.link_port
    return f"host=127.0.0.1 port={port} user={SUPERUSER} dbname=postgres"
