"""One look at a site's database: its role, its epoch, how far every stage has come, what waits and what is owed.

A primary and a standby answer alike. Everything is looked up by keys, however long the history is: what waits in front
of a stage is the last serial less the vector, the oldest of it is the row behind the vector, the rate comes from the
last few segments. The tables are read in one snapshot and the log's position behind it, so that a gate asked for that
position speaks of whatever was read.

Every age is measured against the database's own clock.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from zerotail.core.gate import Asker, Gate, GateAnswer, decide
from zerotail.core.identity import Epoch, Lsn, Timeline
from zerotail.core.life import Check, check
from zerotail.core.standby import Commits, Follower
from zerotail.deadline import Deadline
from zerotail.postgres.connection import Connection, connect, one_row, snapshot
from zerotail.postgres.doubt import OpenDoubt, read_open_doubts
from zerotail.postgres.gate import ask_standby
from zerotail.postgres.installation import is_at_home, read_installation
from zerotail.postgres.owed import Backlog, read_backlogs
from zerotail.postgres.position import read_position
from zerotail.postgres.process import ProcessSeen, read_reports
from zerotail.postgres.rights import MissingRight, missing_rights
from zerotail.postgres.site import read_numbers
from zerotail.postgres.synchronous import read_commits
from zerotail.postgres.transaction import session_within

_PAUSE_SECONDS = 0.02
_LAST_QUESTION_SECONDS = 0.15
"""Of the deadline: whoever is still behind then is told to be so, instead of being late."""
_ROLE = """
select pg_is_in_recovery(),
       (select system_identifier from pg_control_system()),
       case when pg_is_in_recovery() then 0
            else ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int end,
       exists (select from pg_stat_wal_receiver where status = 'streaming'),
       case when not pg_is_in_recovery() then null
            when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
            else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) end::float8,
       to_regclass('zerotail.process') is not null, to_regclass('zerotail.life') is not null
"""
_LIFE = "select coalesce(zerotail.life_in_force()::text, '')"
_EPOCH = """
select epoch, site, timeline, durability, phase, opened_at, operator,
       greatest(extract(epoch from clock_timestamp() - opened_at), 0)::float8
  from zerotail.epoch order by epoch desc limit 1
"""
_SEGMENTS_OF_RATE = 50
_SECONDS_OF_RATE = 10
_HEADS = f"""
with lanes as materialized (select * from zerotail.owed where to_topic)
select head.stage, head.partition, head.segment, head.next_position,
       extract(epoch from clock_timestamp() - to_timestamp(head.decided_at / 1e6))::float8,
       coalesce(waiting.count, 0)::bigint,
       extract(epoch from clock_timestamp() - waiting.oldest)::float8,
       coalesce(recent.rate, 0)::float8,
       array(select version from (
                 (select version from zerotail.segment where segment.stage = head.stage
                     and segment.partition = head.partition order by segment limit 1)
                 union
                 (select version from zerotail.segment where segment.stage = head.stage
                     and segment.partition = head.partition order by segment desc limit 1)) as ends)
  from zerotail.head
 cross join lateral (
       select sum(one.count) as count, min(one.oldest) as oldest from (
           select greatest(coalesce((
                      select max(serial) from zerotail.instruction
                       where instruction.producer = producer.producer and instruction.partition = head.partition), 0)
                      - taken.serial, 0) as count,
                  (select submitted_at from zerotail.instruction
                    where instruction.producer = producer.producer and instruction.partition = head.partition
                      and instruction.serial = taken.serial + 1) as oldest
             from zerotail.producer
            cross join lateral (
                  select coalesce((head.vector ->> producer.producer::text)::bigint, 0) as serial) as taken
            where producer.consumer = head.stage and producer.channel = ''
            union all
           select count(*), min(submission.submitted_at)
             from zerotail.submission join zerotail.producer using (producer)
            where producer.consumer = head.stage and submission.partition = head.partition
            union all
           select lanes.messages, (
                  select to_timestamp(segment.decided_at / 1e6)
                    from zerotail.outbox join zerotail.segment
                      on segment.stage = lanes.stage and segment.partition = lanes.partition
                     and segment.segment = outbox.segment
                   where lanes.messages > 0 and outbox.channel = lanes.channel and outbox.partition = lanes.partition
                     and outbox.target = lanes.target and outbox.first_number <= lanes.acknowledged + 1
                   order by outbox.first_number desc limit 1)
             from zerotail.producer join lanes
               on lanes.channel = producer.channel and lanes.partition = producer.source_partition
              and lanes.target = head.partition
            where producer.consumer = head.stage) as one) as waiting
 cross join lateral (
       select (head.next_position - min(last.first_position))
              / greatest(extract(epoch from clock_timestamp() - min(last.decided)), 1) as rate
         from (select first_position, to_timestamp(decided_at / 1e6) as decided from zerotail.segment
                where segment.stage = head.stage and segment.partition = head.partition
                order by segment desc limit {_SEGMENTS_OF_RATE}) as last
        where last.decided > clock_timestamp() - interval '{_SECONDS_OF_RATE} seconds') as recent
 order by head.stage, head.partition
"""
_REQUESTS = """
select producer.name, request.partition, request.serial, request.number
  from zerotail.request
  join zerotail.producer using (producer)
  join zerotail.head on head.stage = producer.consumer and head.partition = request.partition
 where coalesce((head.vector ->> producer.producer::text)::bigint, 0) < request.serial
 order by producer.name, request.partition
"""
# By its position, which a database of before has as well.
_AT_THE_DOOR = """
select producer.name, poison.partition, poison.serial, poison.reason
  from zerotail.poison
  join zerotail.producer using (producer)
  join zerotail.head on head.stage = poison.stage and head.partition = poison.partition
 where poison.decision = '' and poison.position < 0
   and poison.serial > coalesce((head.vector ->> producer.producer::text)::bigint, 0)
 order by poison.found_at
"""
_SET_ASIDE = "select count(*) from zerotail.set_aside where decision = ''"


@dataclass(frozen=True, slots=True)
class EpochSeen:
    """The newest epoch that a database knows."""

    epoch: int
    site: str
    timeline: int
    durability: str
    phase: str
    opened_at: datetime
    operator: str
    seconds_ago: float = math.inf
    """Since it was opened, by the database's own clock."""


@dataclass(frozen=True, slots=True)
class HeadSeen:
    """How far a stage and partition has come, and what waits in front of it."""

    stage: str
    partition: int
    segment: int
    applied: int
    idle_seconds: float
    """Since its last segment; of one that has none yet, since the beginning of time."""
    waiting: int
    oldest_seconds: float | None
    """Age of the oldest that waits; None when nothing does, or nobody knows its age."""
    records_per_second: float
    versions: tuple[str, ...] = ()
    """Of the code that made its first and its last segment."""


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """A producer is asked to send again from this serial on."""

    producer: str
    partition: int
    serial: int
    number: int


@dataclass(frozen=True, slots=True)
class StandsSeen:
    """A producer stands in a partition: no record can be made of this row."""

    producer: str
    partition: int
    serial: int
    reason: str


@dataclass(frozen=True, slots=True)
class Books:
    """What the tables say, in one snapshot."""

    epoch: EpochSeen | None
    heads: tuple[HeadSeen, ...]
    lanes: tuple[Backlog, ...]
    doubts: tuple[OpenDoubt, ...]
    requests: tuple[RequestSeen, ...]
    processes: tuple[ProcessSeen, ...]
    sites: frozenset[str]
    """The sites that have a number."""
    set_aside: int | None = 0
    """Rows that could not become instructions, and wait for a decision; None where the table is missing."""
    stands: tuple[StandsSeen, ...] = ()
    """Rows that could not become records, and wait for a decision."""
    installation: str = ""
    """The identity of the installation; empty where there is none yet."""
    epochs: frozenset[int] = frozenset()
    """All that the database knows."""
    restored: bool = False
    """Whether the tables were loaded from a dump, and nobody has said so yet."""


@dataclass(frozen=True, slots=True)
class DatabaseLook:
    """What a database answers."""

    role: Literal["primary", "standby"]
    system: int
    timeline: int
    """0 at a standby."""
    follows: bool
    """Whether a standby receives its primary's log."""
    replay_seconds: float | None
    """How far a standby's tables are behind the log that it has."""
    followers: tuple[Follower, ...]
    waits_for: str
    """Of a primary: its `synchronous_standby_names`."""
    position: Lsn
    """Of a primary: behind everything that was read."""
    books: Books | None
    """None when the tables are not there."""
    lacks: tuple[MissingRight, ...] = ()
    """What whoever asks could not do here in an act."""
    commit_level: str = "on"
    """Of a primary: its `synchronous_commit`."""
    life: str = ""
    """Of a primary: the nonce of the life that runs, if it is verified."""


@dataclass(frozen=True, slots=True)
class GateLook:
    """What the gate says to the active site, and the standby's words behind that."""

    verdict: Gate
    answer: GateAnswer
    behind_bytes: int
    ahead_bytes: int = 0


def observe_database(dsn: str, deadline: Deadline) -> DatabaseLook:
    """Look once; `Unavailable` when the database does not answer, `Refused` when it does not let us look."""
    with session_within(dsn, deadline, application="zerotail status") as connection:
        return _look(connection)


def observe_gate(primary: DatabaseLook, primary_dsn: str, standby_dsn: str, deadline: Deadline) -> GateLook:
    """Ask as an emitter does: for one position, and again while the standby is only behind.

    Reading writes log, too (hint bits), which nobody waits for: the primary flushes it some 0.2 s later, and only then
    the standby can have it.
    """
    epoch = primary.books.epoch.epoch if primary.books and primary.books.epoch else 0
    asker = Asker(primary.system, Timeline(primary.timeline), Epoch(epoch), primary.life)
    standby = connect(standby_dsn, deadline, application="zerotail gate")
    try:
        while True:
            answer = ask_standby(standby, deadline)
            verdict = decide(answer, asker, primary.position)
            if verdict is not Gate.BEHIND or deadline.seconds_left < _LAST_QUESTION_SECONDS:
                break
            time.sleep(_PAUSE_SECONDS)
        if answer.holds > primary.position and _is_ahead(answer, asker, primary_dsn, deadline):
            verdict = Gate.AHEAD
        return GateLook(
            verdict, answer, max(0, primary.position - answer.flushed), max(0, answer.holds - primary.position)
        )
    finally:
        standby.close()


def _is_ahead(answer: GateAnswer, asker: Asker, primary_dsn: str, deadline: Deadline) -> bool:
    """Whether the standby holds what the primary does not have by now, either: it may well have written since."""
    with session_within(primary_dsn, deadline, application="zerotail status") as connection:
        return check(answer, asker, read_position(connection)) is Check.AHEAD


def log_silence_seconds(connection: Connection) -> float | None:
    """How long ago a standby heard of its primary's log; None when it receives none."""
    row = connection.execute(
        b"select extract(epoch from clock_timestamp() - last_msg_receipt_time)::float8 from pg_stat_wal_receiver"
    ).fetchone()
    return None if row is None else row[0]


def _look(connection: Connection) -> DatabaseLook:
    standby, system, timeline, follows, replay_seconds, has_tables, has_lives = one_row(connection, _ROLE)
    books = None
    if has_tables:
        with snapshot(connection):
            books = _read_books(connection)
    commits = Commits("", ()) if standby else read_commits(connection)
    return DatabaseLook(
        role="standby" if standby else "primary",
        system=int(system),
        timeline=timeline,
        follows=follows,
        replay_seconds=replay_seconds,
        followers=commits.followers,
        waits_for=commits.setting,
        commit_level=commits.level,
        position=Lsn(0) if standby else read_position(connection),
        books=books,
        lacks=missing_rights(connection) if has_tables else (),
        life=one_row(connection, _LIFE)[0] if has_lives and not standby else "",
    )


def _read_books(connection: Connection) -> Books:
    epoch = connection.execute(_EPOCH.encode()).fetchone()
    return Books(
        None if epoch is None else EpochSeen(*epoch),
        tuple(replace(HeadSeen(*row), versions=tuple(row[-1])) for row in connection.execute(_HEADS.encode())),
        tuple(read_backlogs(connection)),
        tuple(read_open_doubts(connection)),
        tuple(RequestSeen(*row) for row in connection.execute(_REQUESTS.encode())),
        read_reports(connection),
        frozenset(read_numbers(connection)),
        _count_set_aside(connection),
        tuple(StandsSeen(*row) for row in connection.execute(_AT_THE_DOOR.encode())),
        read_installation(connection).name,
        frozenset(number for (number,) in connection.execute(b"select epoch from zerotail.epoch")),
        not is_at_home(connection),
    )


def _count_set_aside(connection: Connection) -> int | None:
    if one_row(connection, "select to_regclass('zerotail.set_aside')")[0] is None:
        return None
    count: int = one_row(connection, _SET_ASIDE)[0]
    return count
