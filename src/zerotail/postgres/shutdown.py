"""The end of a log whose primary was shut down cleanly, as its standby has it.

The last thing that a primary writes is the checkpoint with which it shuts down, and it waits until its standby has it.
A standby makes a restart point of the last checkpoint that it has applied, when it is asked to (`checkpoint`), and says
where that one stands. If it is one of a shutdown, which begins where it stands itself, and nothing follows, then this
copy has all there ever was.
"""

from __future__ import annotations

from zerotail.core.identity import Lsn
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unavailable
from zerotail.postgres.connection import Connection, one_row
from zerotail.postgres.transaction import session_within

NOT_SEEN = Lsn(2**63 - 1)
"""Behind everything: an end that no copy is known to have."""
_PAGE_BYTES = 8192
_RECORD_BYTES = 120
"""Of a checkpoint: header, block header and body, rounded up to 8."""
_HEADER_BYTES = (24, 40)
"""Of a page, and of the first one of a segment."""
_CONTROL = """
select (checkpoint_lsn - '0/0')::bigint, (redo_lsn - '0/0')::bigint, (pg_last_wal_replay_lsn() - '0/0')::bigint
  from pg_control_checkpoint()
"""


def find_end(dsn: str, deadline: Deadline) -> Lsn:
    """Where the log ends with a shutdown of its primary; `NOT_SEEN` when this standby does not come to such an end in
    time, `Refused` when whoever asks may not ask for a checkpoint.
    """
    try:
        with session_within(dsn, deadline) as connection:
            return wait_until("the end of the log is there", lambda: _look(connection), deadline)
    except Unavailable:
        return NOT_SEEN


def _look(connection: Connection) -> Lsn | None:
    connection.execute(b"checkpoint")
    checkpoint, redo, replayed = one_row(connection, _CONTROL)
    return Lsn(replayed) if ends_with_shutdown(checkpoint, redo, replayed) else None


def ends_with_shutdown(checkpoint: int, redo: int, replayed: int) -> bool:
    """Whether the record of this checkpoint is one of a shutdown, and the last one."""
    behind = checkpoint % _PAGE_BYTES + _RECORD_BYTES - _PAGE_BYTES
    more = (0,) if behind < 0 else _HEADER_BYTES if behind else (0, *_HEADER_BYTES)
    return checkpoint == redo and replayed - checkpoint - _RECORD_BYTES in more
