"""The identity of an installation in a real database: made once, with the first epoch or for what has begun before."""

from __future__ import annotations

import pytest

from support.command import call
from support.journal import day_of, new_database, superuser
from support.standings import EAST, WEST
from zerotail.core.installation import IDENTITY_BYTES, UNMARKED, Installation
from zerotail.lab.layout import Layout
from zerotail.postgres.installation import read_installation
from zerotail.postgres.lineage import open_first_epoch
from zerotail.postgres.schema import apply_schema

pytestmark = pytest.mark.servers


def seen(database: str) -> Installation:
    with superuser(database) as connection:
        return read_installation(connection)


def test_an_installation_has_one_from_its_first_epoch_on(warm_lab: Layout) -> None:
    found = []
    for _ in range(2):
        database = new_database(warm_lab)[1]
        assert seen(database) == UNMARKED
        with superuser(database) as connection:
            apply_schema(connection)
            assert read_installation(connection) == UNMARKED, "nothing has begun"
            assert open_first_epoch(connection, EAST, (EAST, WEST)) == 256
            assert open_first_epoch(connection, EAST, (EAST, WEST)) is None
        found.append(seen(database))
    assert all(len(one.identity) == IDENTITY_BYTES and not one.accepts_unmarked for one in found)
    assert found[0].mark != found[1].mark


def test_what_has_begun_without_one_gets_one_and_keeps_its_records(warm_lab: Layout) -> None:
    database = day_of(warm_lab)[1]
    assert seen(database) == UNMARKED
    said = call("schema", "apply", "--dsn", database, "--json").answer("schema-apply")
    after = seen(database)
    assert said["installation"] == after.name != ""
    assert after.owns(0)
    assert after.owns(after.mark)
    assert not after.owns(after.mark ^ 1)
    assert f"installation {after.name}" in call("schema", "apply", "--dsn", database).out
    assert seen(database) == after, "it is made once"
