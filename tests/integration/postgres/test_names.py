"""Names that a configuration takes, PostgreSQL takes, too: for whom commits wait for, and for slots (E23)."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from zerotail.core.standby import slot_of, written
from zerotail.deadline import Deadline
from zerotail.lab.database import database_user, dsn, programs_for, put_on_user
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import one_row, session
from zerotail.postgres.synchronous import is_streaming, set_synchronous_standby, wait_until_streaming

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("name", ["dc-west", "DC-West", "West_2"])
def test_commits_wait_for_a_standby_of_this_name(warm_lab: Layout, name: str) -> None:
    east = dsn(warm_lab.database("east"))
    programs = programs_for(warm_lab, "east.postgres")
    folder = warm_lab.folder_of("east.postgres") / f"log-for-{name}"
    folder.mkdir()
    if put_on_user():
        shutil.chown(folder, database_user().pw_uid)
    place = ("-D", folder, "-S", slot_of(name), "-d", f"{east} application_name={name}")
    programs.run("pg_receivewal", *place, "--create-slot", deadline=Deadline.after(20))
    with session(east, Deadline.after(60)) as primary:
        names = one_row(primary, "show synchronous_standby_names")[0]
        receiver = subprocess.Popen(programs.command("pg_receivewal", *place, "--synchronous"), cwd="/")
        try:
            wait_until_streaming(primary, name, Deadline.after(20))
            set_synchronous_standby(primary, name)
            assert one_row(primary, "show synchronous_standby_names") == (written(name),)
            primary.execute("set synchronous_commit = on")
            primary.execute("create table if not exists waited_for (name text)")
            primary.execute("insert into waited_for values (%s)", (name,))  # hangs where the name is another one
            assert is_streaming(primary, name)
        finally:
            receiver.terminate()
            receiver.wait(20)
            primary.execute("set synchronous_commit = local")
            primary.execute("drop table if exists waited_for")
            set_synchronous_standby(primary, "west" if names else None)
            primary.execute("select pg_drop_replication_slot(%s)", (slot_of(name),))
            assert one_row(primary, "show synchronous_standby_names") == (names,)
