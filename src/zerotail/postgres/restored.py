"""Tables that were loaded from a dump: how that is noticed, and how they begin a life of their own.

Whatever was written after the dump is gone from the tables, and still is in topics and at receivers, under the numbers
that come next here. A dump carries every row and no place: where the table of the identity lies (server, database,
table) was noted when the identity was made. A physical copy has the same place.
"""

from __future__ import annotations

from psycopg.types.json import Jsonb

from zerotail.core.epoch import Cut, Durability, Phase
from zerotail.core.identity import Epoch, SiteName, epoch_of, generation_of
from zerotail.core.installation import Installation
from zerotail.errors import Refused
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.installation import is_at_home, new_identity, read_installation
from zerotail.postgres.lineage import encode_cut, has_begun, observe_cut
from zerotail.postgres.promotion import current_timeline
from zerotail.postgres.site import read_numbers

GENERATIONS_AHEAD = 1 << 16
"""The former life may have opened epochs that the dump does not know; an accepted loss alone is a thousand of them."""


def may_begin_anew(connection: Connection) -> bool:
    """Whether tables of which somebody says that they were restored can be: they do not lie where they did, or nothing
    shows where they did.
    """
    if not is_at_home(connection):
        return True
    return has_begun(connection) and not read_installation(connection).identity


def begin_anew(connection: Connection, site: SiteName, operator: str) -> tuple[Installation, Epoch, Cut] | None:
    """Give restored tables a new identity and an epoch of `site` with a cut of what there is; None when they lie where
    they always lay. Whoever was at work on them before is refused from then on.

    Tables without an identity are of a schema from before there was one: nothing shows where they lay.
    """
    with connection.transaction():
        connection.execute(
            b"lock table zerotail.epoch, zerotail.head, zerotail.lane, zerotail.installation in exclusive mode"
        )
        if not may_begin_anew(connection):
            return None
        number = read_numbers(connection).get(site)
        if number is None:
            raise Refused(f"the database does not know the site {site}.", code="ZT438", tries=("zerotail config show",))
        connection.execute(
            b"insert into zerotail.installation (identity, accepts_unmarked, home) values (%s, false, zerotail.home()) "
            b"on conflict (one) do update set identity = excluded.identity, accepts_unmarked = false, "
            b"home = excluded.home",
            (new_identity(),),
        )
        last = Epoch(one_row(connection, "select max(epoch) from zerotail.epoch")[0])
        epoch, cut = epoch_of(generation_of(last) + GENERATIONS_AHEAD, number), observe_cut(connection)
        connection.execute(
            b"insert into zerotail.epoch (epoch, site, timeline, durability, phase, cut, cause, operator) "
            b"values (%s, %s, %s, %s, %s, %s, 'restored', %s)",
            (
                *(epoch, site, current_timeline(connection), Durability.GATED.value, Phase.LIVE.value),
                *(Jsonb(encode_cut(cut)), operator),
            ),
        )
        connection.execute(b"update zerotail.head set epoch = %s, claim = claim + 1", (epoch,))
        connection.execute(b"update zerotail.lane set incarnation = incarnation + 1")
        return read_installation(connection), epoch, cut
