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
from zerotail.postgres.lineage import encode_cut, observe_cut
from zerotail.postgres.promotion import current_timeline
from zerotail.postgres.site import read_numbers

GENERATIONS_AHEAD = 256
"""The former life may have opened epochs that the dump does not know; no more than these."""


def begin_anew(connection: Connection, site: SiteName, operator: str) -> tuple[Installation, Epoch, Cut] | None:
    """Give restored tables a new identity and an epoch of `site` with a cut of what there is; None when they lie where
    they always lay. Whoever was at work on them before is refused from then on.
    """
    with connection.transaction():
        connection.execute(
            b"lock table zerotail.epoch, zerotail.head, zerotail.lane, zerotail.installation in exclusive mode"
        )
        if is_at_home(connection):
            return None
        number = read_numbers(connection).get(site)
        if number is None:
            raise Refused(f"the database does not know the site {site}.", code="ZT438", tries=("zerotail config show",))
        connection.execute(
            b"update zerotail.installation set identity = %s, accepts_unmarked = false, home = zerotail.home()",
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
