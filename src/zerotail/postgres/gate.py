"""The gate's question to the other site's database, and where the asker stands.

`core.gate` decides; this module fetches. Timeline and flushed position come from one row of the standby's receiver
process, which holds both under one lock: a position is never paired with the timeline of another moment. While no
receiver runs (the standby has lost its primary) there is no such row, and the answer is no.

What the standby has applied counts as flushed, too: a receiver that has just started says less than the standby holds,
and goes on saying so until its primary writes again (decision 0002). The applied position is read *before* the row: so
it lies in the history of the row's timeline, whatever happens in between.

Every answer is awaited on the client's side with a deadline: a frozen standby accepts a connection and then is silent.
"""

from __future__ import annotations

import select

import psycopg
from psycopg import pq

from zerotail.core.gate import Asker, Gate, GateAnswer, decide
from zerotail.core.identity import Epoch, Lsn, Timeline
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused, Unavailable
from zerotail.ports import EndRead
from zerotail.postgres.connection import Connection, one_row, where
from zerotail.postgres.position import POSITION
from zerotail.postgres.transaction import READ_ONLY, Declined

_EPOCH = "coalesce((select max(epoch) from zerotail.epoch), 0)"
_LIFE = "coalesce((select nonce::text from zerotail.life order by number desc limit 1), '')"
_QUESTION = f"""
with before as materialized (select pg_last_wal_replay_lsn() as applied)
select pg_is_in_recovery(),
       (select system_identifier from pg_control_system()),
       coalesce(receiver.received_tli, 0),
       {_EPOCH},
       coalesce(receiver.held - '0/0'::pg_lsn, 0)::bigint,
       coalesce(before.applied - '0/0'::pg_lsn, 0)::bigint,
       {_LIFE}
from before
left join lateral (select received_tli, greatest(flushed_lsn, before.applied) as held
                     from pg_stat_wal_receiver
                    where status = 'streaming'
                      and case when last_msg_send_time <> last_msg_receipt_time then true
                               else (select backend_start < clock_timestamp() - interval '1 s'
                                       from pg_stat_get_activity(pid)) end) as receiver on true
"""
_ASKER = f"""
select (select system_identifier from pg_control_system()),
       ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int,
       {_EPOCH},
       coalesce(zerotail.life_in_force()::text, '')
"""
_END = f"select asker.*, ({POSITION}) from ({_ASKER}) as asker where not pg_is_in_recovery()"


def observe_asker(primary: Connection) -> Asker:
    """Who asks: the database that wrote the rows, its timeline and its epoch."""
    system, timeline, epoch, life = one_row(primary, _ASKER)
    return Asker(int(system), Timeline(int(timeline)), Epoch(int(epoch)), life)


def observe_end(primary: Connection) -> EndRead:
    """Who asks, and how far the log of that database reaches now: every wait at the gate asks it, in one statement."""
    row = primary.execute(_END.encode()).fetchone()
    if row is None:
        raise Declined(READ_ONLY)
    system, timeline, epoch, life, position = row
    return EndRead(Asker(int(system), Timeline(int(timeline)), Epoch(int(epoch)), life), Lsn(int(position)))


def ask_standby(standby: Connection, deadline: Deadline) -> GateAnswer:
    """What the standby says of itself.

    `Unavailable` when it does not answer in time (the session is then closed), `Refused` when it cannot answer, as one
    without our tables cannot.
    """
    in_recovery, system, timeline, epoch, flushed, applied, life = _ask_within(standby, _QUESTION, deadline)
    return GateAnswer(
        in_recovery=in_recovery == "t",
        system=int(system),
        timeline=Timeline(int(timeline)),
        epoch=Epoch(int(epoch)),
        flushed=Lsn(int(flushed)),
        applied=Lsn(int(applied)),
        life=life,
    )


def wait_until_gate_opens(primary: Connection, standby: Connection, wanted: Lsn, deadline: Deadline) -> None:
    """Return when the other site has flushed everything below `wanted`.

    The primary is asked each time, too: whoever waits for a site that is gone would wait for ever.
    """
    wait_until(
        f"the other site has flushed the log up to {wanted}",
        lambda: decide(ask_standby(standby, deadline), observe_asker(primary), wanted) is Gate.OPEN,
        deadline,
        every_seconds=0.002,
    )


def _ask_within(connection: Connection, query: str, deadline: Deadline) -> list[str]:
    """The text values of the single row of a query, awaited no longer than the deadline."""
    raw = connection.pgconn
    place = where(connection.info.dsn)
    waiting = select.poll()
    try:
        waiting.register(raw.socket, select.POLLIN)
        raw.send_query(query.encode())
        results: list[pq.abc.PGresult] = []
        while True:
            while raw.is_busy():  # also behind the last result: `get_result` would wait without a limit
                if not waiting.poll(deadline.seconds_left * 1000):
                    connection.close()
                    raise Unavailable(f"the database at {place} is silent.", code="ZT302")
                raw.consume_input()
            one = raw.get_result()
            if one is None:
                break
            results.append(one)
        result = results[0] if results else None
    except psycopg.Error as error:
        raise Unavailable(f"the database at {place} was lost: {error}", code="ZT302") from error
    if result is None or result.status != pq.ExecStatus.TUPLES_OK or result.ntuples != 1:
        said = result.error_message.decode(errors="replace").strip() if result else "nothing"
        if result is not None and _is_passing(result):
            connection.close()
            raise Unavailable(f"the database at {place} was lost: {said}", code="ZT302")
        raise Refused(f"the database at {place} did not answer the gate's question: {said}", code="ZT304")
    return [(result.get_value(0, column) or b"").decode() for column in range(result.nfields)]


def _is_passing(result: pq.abc.PGresult) -> bool:
    """Whether the server goes down, or cancels what stands in the way of its log: neither is an answer."""
    code = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
    severity = result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) or b""
    return severity in (b"FATAL", b"PANIC") or code[:2] in (b"40", b"57")
