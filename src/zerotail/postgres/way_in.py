"""The way in of a site, and who shuts it: an act that drains, for as long as it lives.

It holds a lock on a word, in a transaction of a session of its own (`schema/0015_way_in.sql`). Every statement that
brings a row holds the same lock, shared, until its transaction ends: so the act has it when every row that was let in
is there, and nobody gets in behind it. A session that ends, however, opens the way again: the site's own processes
say so in the epoch, in a short transaction of theirs, and rows wait for that.
"""

from __future__ import annotations

import psycopg

from zerotail.core.epoch import Phase
from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.ports import Refused, Standing, Unreachable
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.vigil import cut_after

_SILENT_MILLISECONDS = 10_000
"""An act that is silent for so long drains no more: a frozen machine must not stop a site."""
_SHUT = """
begin;
set local lock_timeout = {patience};
set local idle_in_transaction_session_timeout = {silent};
select pg_advisory_xact_lock(hashtextextended('zerotail: the way in', 0))
"""


def drains(standing: Standing) -> bool:
    """Whether this is a primary whose epoch drains, held by somebody or not."""
    row = standing.lineage.current
    return row.phase is Phase.DRAINING and standing.timeline == row.timeline


def end_drain(connection: Connection) -> bool:
    """Whether nobody drains this site now; a drain that nobody holds any more ends with that.

    For a short transaction of ours: whoever else asks waits for its end.
    """
    return bool(one_row(connection, "select zerotail.end_drain()")[0])


class ShutWayIn:
    """The way in of one site, shut until this is closed."""

    def __init__(self, site: SiteName, dsn: str, patience_seconds: float) -> None:
        self.site = site
        self._dsn = dsn
        self._patience_seconds = patience_seconds
        self._connection: Connection | None = None

    def shut(self) -> Refused | Unreachable | None:
        """Let nobody in, and every transaction end that has brought something; None when that is so."""
        patience = self._patience_seconds
        text = _SHUT.format(patience=int(patience * 1000), silent=_SILENT_MILLISECONDS)
        try:
            self._connection = connect(self._dsn, Deadline.after(patience), application="zerotail drain")
            with cut_after(self._connection, patience + 1):
                self._connection.execute(text.encode())
        except psycopg.errors.LockNotAvailable:
            self.close()
            return Refused(f"a transaction that has inserted rows does not end in {patience:g} s (see pg_locks)")
        except (Unavailable, psycopg.Error):
            self.close()
            return Unreachable()
        return None

    def is_shut(self) -> bool:
        """Whether it still is; who asks is heard of, and not ended for its silence."""
        if self._connection is None:
            return False
        try:
            with cut_after(self._connection, self._patience_seconds):
                self._connection.execute(b"select 1")
        except psycopg.Error:
            self.close()
            return False
        return True

    def close(self) -> None:
        """Open it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
