"""Places in the log: a position that covers whatever a session has read or written so far.

Where the next record would go is the safe answer, also for rows whose commit was not forced to disk. At the beginning
of a page, and of a file, it lies behind a header that is written together with the record: no standby ever confirms
that much while the primary is idle. Such a position is taken back to where the page begins: nothing of ours lies
between.
"""

from __future__ import annotations

from zerotail.core.identity import Lsn
from zerotail.postgres.connection import Connection, one_row

POSITION = """
select place - case when mod(place, pg_size_bytes(current_setting('wal_segment_size'))) = 40 then 40
                    when mod(place, current_setting('wal_block_size')::bigint) = 24 then 24
                    else 0 end
  from (select ((case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end)
                - '0/0'::pg_lsn)::bigint as place) as now
"""


FLUSHED = """
select ((case when pg_is_in_recovery() then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn(), '0/0'::pg_lsn)
              else pg_current_wal_flush_lsn() end) - '0/0'::pg_lsn)::bigint
"""
"""How much of the log is safe here. A standby that was started anew has replayed more than it has received since."""


def read_flushed(connection: Connection) -> Lsn:
    """How much of the log this database holds for good: every commit that was waited for is below it."""
    return Lsn(int(one_row(connection, FLUSHED)[0]))


def read_position(connection: Connection) -> Lsn:
    """A position that covers whatever this session has read so far."""
    return Lsn(int(one_row(connection, POSITION)[0]))
