"""The numbers of the sites in a real database: no epoch is opened under another one, and nobody changes them."""

from __future__ import annotations

import pytest

from support.epochs import open_next
from support.journal import day_of, superuser
from support.standings import EAST, NUMBERS, WEST
from zerotail.core.identity import SiteName
from zerotail.errors import Refused
from zerotail.lab.layout import Layout
from zerotail.ports import Done
from zerotail.ports import Refused as Declined
from zerotail.postgres.lineage import OTHER_NUMBER, open_first_epoch, read_standing
from zerotail.postgres.site import read_numbers, store_numbers

pytestmark = pytest.mark.servers


@pytest.fixture
def database(warm_lab: Layout) -> str:
    return day_of(warm_lab)[1]


def test_an_epoch_is_opened_under_the_number_of_its_own_site_only(database: str) -> None:
    for site, number in ((EAST, 1), (WEST, 0), (EAST, 2), (SiteName("north"), 2)):
        assert open_next(database, site, number) == Declined(OTHER_NUMBER), (site, number)
    with superuser(database) as connection:
        assert read_standing(connection).epoch == 256
    assert isinstance(open_next(database, WEST, 1), Done)


def test_nobody_opens_an_epoch_where_no_site_has_a_number(database: str) -> None:
    with superuser(database) as connection:
        connection.execute("drop table zerotail.site")
    assert open_next(database) == Declined(OTHER_NUMBER)


def test_numbers_are_given_once_and_to_these_sites(database: str) -> None:
    with superuser(database) as connection:
        assert store_numbers(connection, (WEST, EAST)) == NUMBERS
        with pytest.raises(Refused, match="and the database knows east and west") as refused:
            store_numbers(connection, (EAST, SiteName("north")))
        assert refused.value.code == "ZT438"
        connection.execute("delete from zerotail.site")
        with pytest.raises(Refused):
            store_numbers(connection, (WEST, SiteName("north")))
        assert read_numbers(connection) == {}, "a stranger to the epochs gets no number"
        connection.execute("delete from zerotail.epoch")
        assert open_first_epoch(connection, WEST, (WEST, EAST)) == 256
        assert read_numbers(connection) == {WEST: 0, EAST: 1}
