"""The rights of an act are looked up before it begins, and what is said to be granted is enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from support.journal import new_database
from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline
from zerotail.errors import Refused
from zerotail.lab.layout import Layout
from zerotail.operate.world import World
from zerotail.postgres.connection import Connection, connect
from zerotail.postgres.rights import missing_rights
from zerotail.postgres.schema import apply_schema

pytestmark = pytest.mark.servers

PROMOTE = "execute on function pg_promote(boolean, integer)"
WEST = SiteName("west")


@pytest.fixture
def owner(warm_lab: Layout) -> Iterator[Connection]:
    """The owner of a database with our tables, beside somebody who has no rights in it yet."""
    connection = connect(new_database(warm_lab)[1], Deadline.after(30))
    apply_schema(connection)
    connection.execute("create role ada_of_rights login")
    yield connection
    connection.execute("drop role ada_of_rights")
    connection.execute(f"grant {PROMOTE} to zerotail_operator".encode())
    connection.close()


def as_ada(owner: Connection) -> Connection:
    return connect(make_conninfo(owner.info.dsn, user="ada_of_rights"), Deadline.after(10))


def missing(owner: Connection) -> list[tuple[str, str]]:
    with as_ada(owner) as connection:
        return [(one.what, one.grant) for one in missing_rights(connection)]


def test_a_superuser_lacks_nothing(owner: Connection) -> None:
    assert missing_rights(owner) == ()


def test_whoever_is_no_operator_is_told_the_one_role_that_gives_all(owner: Connection) -> None:
    said = missing(owner)
    assert len(said) == 7
    assert {grant for _, grant in said} == {"grant zerotail_operator to ada_of_rights"}
    owner.execute("grant zerotail_operator to ada_of_rights")
    assert missing(owner) == []


def test_what_the_role_lacks_itself_is_named(owner: Connection) -> None:
    owner.execute("grant zerotail_operator to ada_of_rights")
    owner.execute(f"revoke {PROMOTE} from zerotail_operator".encode())
    assert missing(owner) == [("promote a standby", f"grant {PROMOTE} to zerotail_operator")]
    owner.execute(f"grant {PROMOTE} to zerotail_operator".encode())
    assert missing(owner) == []


def test_what_the_emitters_of_a_standby_need_is_no_right_of_whoever_acts(owner: Connection) -> None:
    right = "alter system on parameter primary_conninfo"
    owner.execute("grant zerotail_operator to ada_of_rights")
    owner.execute(f"revoke {right} from zerotail_writer".encode())
    try:
        with as_ada(owner) as connection:
            lacks = missing_rights(connection)
        assert [one.of_the_emitters for one in lacks] == [True]
        World({}, lacks={WEST: lacks}).require_rights(WEST, promotes=True, keeps_tail=True)
        owner.execute(lacks[0].grant.encode())
        assert missing(owner) == []
    finally:
        owner.execute(f"grant {right} to zerotail_writer".encode())


def test_an_act_is_refused_before_it_begins(owner: Connection) -> None:
    with as_ada(owner) as connection:
        world = World({}, lacks={WEST: missing_rights(connection)})
    with pytest.raises(Refused, match="the user of west's dsn may not write epochs or see who follows") as refused:
        world.require_rights(WEST, promotes=True)
    assert refused.value.code == "ZT459"
    assert refused.value.tries == (
        "grant zerotail_operator to ada_of_rights;    # in SQL, as a superuser at the primary",
    )
