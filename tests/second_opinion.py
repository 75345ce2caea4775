"""A second judge of histories, in SQL, written from `docs/verdicts.md` and not from the checker.

The events go into tables of an in-memory database, with runs, emissions and cuts taken apart, and each rule
is a few queries that select what breaks it. It is slow
    and tells no story; it only has to agree. S10 is left
out: hashes are not for SQL.
"""

# The only text put into a query is this module's own.
# ruff: noqa: S608

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from zerotail.drill.history import AnyEvent, EpochOpened, FinalSegment, FinalSite, StageDeclared, hop_producer

_NESTED = """
create table record
    (site, stage, partition, segment, epoch, place, position, producer, serial, digest, skipped);
create table emission
    (site, stage, partition, segment, epoch, lsn, place, channel, number, digest, target_partition);
create table cut (at, epoch, stage, partition, segment, next_position, chain);
create table lineage (site, epoch);
create table takes (stage, producer);
"""

_VIEWS = """
create view active as select site from FinalSite where role = 'active' and
    (select count(*) from FinalSite where role = 'active') = 1;
create view declared as select distinct channel, stage, receiver, window from ChannelDeclared;
create view row_ as select * from FinalInstruction where site in active;
create view journal as select *, row_number() over (order by stage, partition, segment, at) as ordinal
    from FinalSegment where site in active;
create view numbered as
    select *, row_number() over (partition by site, stage, partition, segment order by at) as copy
    from FinalSegment;
create view taken as select * from record where site in active;
create view reference as select * from emission where site in active;
create view accepted as select a.*, c.receiver from EmissionAttempted a
    left join declared c on c.channel = a.channel where a.answer = 'accepted';
create view listed as select d.* from DoubtListed d join declared c on c.channel = d.channel
    where c.receiver = 'R3';
create view hop as select r.*, c.stage as source_stage, c.stage || '/' || r.partition as producer
    from reference r join declared c on c.channel = r.channel where c.receiver = 'stage';
create view owed as
    select producer, partition, serial, digest from row_
    union all select producer, target_partition, number, digest from hop;
create view mode as select at, epoch, mode, operator, cause from EpochOpened
    union all select at, epoch, mode, operator, null from ModeChanged;
create view final_cut as
    select e.at, e.epoch, p.stage, p.partition, coalesce(c.segment, 0) as segment,
           coalesce(c.next_position, 0) as next_position, coalesce(c.chain, '') as chain
    from EpochOpened e
    join (select stage, partition from FinalSegment union select stage, partition from cut) p
    left join cut c on c.at = e.at and c.stage = p.stage and c.partition = p.partition
    where e.epoch in (select epoch from lineage where site in active);
"""


def _stream(one: str, other: str) -> str:
    columns = ("channel", "partition", "target_partition")
    return " and ".join(f"{one}.{column} = {other}.{column}" for column in columns)


_ORDER = """n.stage, n.partition, n.segment, n.copy, n.epoch, n.first_position, n.decided_at, n.version,
    n.runs, n.inputs, n.skipped, n.chain"""

_RULES: dict[str, list[str]] = {
    "S1": [
        """select 1 from SubmitAccepted s where exists (select 1 from active)
               and s.id not in (select id from row_)""",
        """select 1 from SubmitAccepted s join row_ r on r.id = s.id join takes t on t.producer = r.producer
           where not exists (select 1 from taken k where k.stage = t.stage and k.partition = r.partition
                             and k.producer = r.producer and k.serial = r.serial)""",
        f"""select 1 from reference r join declared c on c.channel = r.channel where c.receiver <> 'stage'
           and not exists (select 1 from accepted a where {_stream("a", "r")} and a.number = r.number)
           and not exists (select 1 from listed d where {_stream("d", "r")} and d.number = r.number)""",
    ],
    "S2": [
        f"""select 1 from accepted a where exists (select 1 from active) and not exists
           (select 1 from reference r where {_stream("a", "r")} and r.number = a.number
               and r.digest = a.digest)""",
        """select 1 from row_ r where not exists (select 1 from SubmitInvoked i where i.id = r.id
           and i.digest = r.digest and i.producer = r.producer and i.partition = r.partition)""",
        """select 1 from row_ r where (select count(*) from SubmitFailed f where f.id = r.id) >=
           (select count(*) from SubmitInvoked i where i.id = r.id)""",
        """select 1 from taken k where k.digest is not null and (not exists
           (select 1 from owed o where o.producer = k.producer and o.partition = k.partition
            and o.serial = k.serial and o.digest = k.digest)
           or not exists (select 1 from takes t where t.stage = k.stage and t.producer = k.producer))""",
    ],
    "S3": [
        f"""select 1 from accepted a group by channel, partition, target_partition,
               number having count(*) > 1 +
           (select count(*) from listed d where {_stream("d", "a")} and d.number = a.number)""",
        "select 1 from row_ group by id having count(*) > 1",
        "select 1 from row_ group by producer, partition, serial having count(*) > 1",
        """select 1 from listed d join declared c on c.channel = d.channel
           group by d.channel, d.partition, d.target_partition, d.epoch,
               d.incarnation having count(*) > c.window""",
    ],
    "S4": [
        f"""with first as (select *, min(at) as came from accepted
                          group by channel, partition, target_partition, number)
           select 1 from first f join first g on {_stream("f", "g")} and g.came < f.came
               and g.number > f.number
           where not exists (select 1 from listed d where {_stream("d", "f")} and d.number = f.number)""",
        """with first as (select *, min(place) as came from taken group by stage, partition, producer,
               serial)
           select 1 from first f join first g on f.stage = g.stage and f.partition = g.partition
           and f.producer = g.producer and g.came < f.came and g.serial > f.serial""",
    ],
    "S5": [
        f"""select 1 from accepted a where a.number > 1 and exists (
               with recursive below(n) as (select 1 union all select n + 1 from below
                   where n + 1 < a.number)
               select 1 from below where not exists
                   (select 1 from accepted b where {_stream("a", "b")} and b.number = n)
               and not exists (select 1 from listed d where {_stream("d", "a")} and d.number = n))""",
        """select 1 from (select number, row_number() over
               (partition by channel, partition, target_partition order by place) as expected
                   from reference)
           where number <> expected""",
    ],
    "S6": [
        f"""select 1 from accepted a join accepted b on {_stream("a", "b")} and b.at < a.at
           where a.receiver = 'R2' and (b.epoch, b.incarnation) > (a.epoch, a.incarnation)""",
        """select 1 from accepted a join ChannelClaimed c on c.channel = a.channel and c.at < a.at
           and (c.partition is null or c.partition = a.partition) where a.receiver = 'R2'
           and c.answer = 'accepted' and (c.epoch, c.incarnation) > (a.epoch, a.incarnation)""",
        """select 1 from EmissionAttempted where answer <> 'older-epoch'
           group by channel, partition, target_partition, number having count(distinct digest) > 1""",
    ],
    "S7": [
        "select 1 from EpochOpened group by epoch having count(distinct site || mode || cuts) > 1",
        """select 1 from ChannelClaimed c join declared d on d.channel = c.channel and d.receiver = 'R2'
           where c.answer = 'accepted' and not coalesce((select e.site from EpochOpened e
               where e.epoch = c.epoch and e.at < c.at order by e.at limit 1) = c.site, false)""",
        """select 1 from ChannelClaimed c join declared d on d.channel = c.channel and d.receiver = 'R2'
           join ChannelClaimed b on b.channel = c.channel and b.answer = 'accepted' and b.at < c.at
           and (b.partition is null or b.partition = c.partition)
           where c.answer = 'accepted' and (b.epoch, b.incarnation) > (c.epoch, c.incarnation)""",
        """select 1 from accepted a where a.receiver = 'R2' and not exists
           (select 1 from ChannelClaimed c where c.at < a.at and c.answer = 'accepted'
               and c.channel = a.channel
            and (c.partition is null or c.partition = a.partition)
            and (c.site, c.epoch, c.incarnation) = (a.site, a.epoch, a.incarnation))""",
        """select 1 from accepted a where a.receiver = 'R2' and
           exists (select 1 from lineage where site in active) and
           a.epoch not in (select epoch from lineage where site in active)""",
    ],
    "S8": [
        f"""select 1 from EmissionAttempted a where not exists (select 1 from Released r
           where {_stream("a", "r")} and r.at < a.at and r.through >= a.number
           and (r.site, r.epoch, r.incarnation) = (a.site, a.epoch, a.incarnation)
           and case r.by when 'exposure' then
               (select m.mode from mode m where m.epoch = r.epoch
                   and m.at < r.at order by m.at desc limit 1) = 'exposed'
           else
               r.other_in_recovery and r.other_timeline = r.timeline and r.other_epoch = r.epoch
               and r.other_lsn_flushed >= r.lsn_wanted and not exists (select 1 from reference f
                   where {_stream("f", "a")} and f.number <= a.number and f.epoch = r.epoch
                   and f.lsn > r.lsn_wanted)
           end)""",
    ],
    "S9": [
        "select 1 from FinalSite where role = 'active' limit 1 offset 1",
        f"""with other as (select s.site, p.stage, p.partition, coalesce((select min(c.segment)
               from final_cut c
                   where s.role = 'deposed' and c.stage = p.stage and c.partition = p.partition
                   and c.epoch not in (select epoch from lineage l where l.site = s.site)), 1e9) as until
               from FinalSite s join (select distinct stage, partition from FinalSegment) p
               where s.role in ('standby', 'deposed') and exists (select 1 from active)),
           theirs as (select o.site, {_ORDER} from other o join numbered n
               on n.site = o.site and n.stage = o.stage and n.partition = o.partition
                   and n.segment <= o.until),
           ours as (select o.site, {_ORDER} from other o join numbered n
               on n.site in active and n.stage = o.stage and n.partition = o.partition
                   and n.segment <= o.until)
           select 1 where exists (select * from ours except select * from theirs)
                       or exists (select * from theirs except select * from ours)""",
        """with standby as (select site from FinalSite where role = 'standby' and exists (select 1
               from active)),
           ours as (select producer, partition, serial, id, digest from row_),
           theirs as (select producer, partition, serial, id, digest from FinalInstruction
               where site in standby)
           select 1 from standby where exists (select * from ours except select * from theirs)
                                    or exists (select * from theirs except select * from ours)""",
        """select 1 from final_cut c where c.segment > 0 and not exists (select 1 from journal j
           where j.stage = c.stage and j.partition = c.partition and j.segment = c.segment
           and j.first_position + json_array_length(j.inputs) = c.next_position
           and (c.chain = '' or c.chain = j.chain))""",
        "select 1 from final_cut c where c.segment = 0 and c.next_position <> 0",
    ],
    "S11": [
        "select 1 from FinalState group by stage, partition, segment having count(distinct digest) > 1",
        """select 1 from journal j join FinalSegment o on o.stage = j.stage and o.partition = j.partition
           and o.segment = j.segment and o.site <> j.site
           where (o.epoch, o.first_position, o.decided_at, o.version, o.runs, o.inputs, o.skipped, o.chain) =
                 (j.epoch, j.first_position, j.decided_at, j.version, j.runs, j.inputs, j.skipped,
                     j.chain) and o.emissions <> j.emissions""",
    ],
    "S12": [
        "select 1 from taken group by stage, partition, producer, serial having count(*) > 1",
        """select 1 from taken group by stage, partition,
               producer having max(serial) <> count(distinct serial)""",
        """select 1 from journal j where json_array_length(inputs) <> (select sum(value ->> 2)
               from json_each(j.runs))""",
        "select 1 from journal group by stage, partition, segment having count(*) > 1",
        """select 1 from journal group by stage,
               partition having min(segment) <> 1 or max(segment) <> count(*)""",
        """select 1 from (select first_position, sum(json_array_length(inputs)) over
               (partition by stage, partition order by ordinal) - json_array_length(inputs) as due
                   from journal)
           where first_position <> due""",
    ],
    "S13": [
        """select 1 from MirrorCopy c left join MirrorSource s on s.mirror = c.mirror
               and s.partition = c.partition
           and s.offset = c.source_offset where s.digest is null or s.digest <> c.digest""",
        "select 1 from MirrorCopy group by mirror, partition, source_offset having count(*) > 1",
        """select 1 from MirrorCopy c join MirrorCopy d on c.mirror = d.mirror and c.partition = d.partition
           and c.offset < d.offset and c.source_offset > d.source_offset""",
        """select 1 from MirrorSource s where s.offset <
               (select max(source_offset) from MirrorCopy c where c.mirror = s.mirror
                   and c.partition = s.partition)
           and s.offset not in
               (select source_offset from MirrorCopy c where c.mirror = s.mirror
                   and c.partition = s.partition)""",
    ],
    "S14": [
        "select 1 from SubmitAccepted group by id having count(distinct serial) > 1",
        "select 1 from SubmitAccepted s join SubmitFailed f on f.id = s.id and f.at > s.at",
        "select 1 from SubmitAccepted s join row_ r on r.id = s.id and r.serial <> s.serial",
    ],
    "S15": [
        """select 1 from journal a join journal b on a.stage = b.stage and a.partition = b.partition
           and a.ordinal < b.ordinal and a.epoch > b.epoch""",
        """select 1 from final_cut c join journal j on j.stage = c.stage and j.partition = c.partition
           where (j.segment > c.segment and j.epoch < c.epoch) or (j.segment <= c.segment
           and j.epoch >= c.epoch)""",
    ],
    "S16": [
        """select 1 from journal where exists (select 1 from lineage where site in active)
           and epoch not in (select epoch from lineage where site in active)""",
        """select 1 from DivergentSegment d join journal j on j.stage = d.stage
               and j.partition = d.partition
           and j.segment = d.segment and j.chain = d.chain where j.chain <> ''""",
        """select 1 from DivergentSegment d, json_each(d.emissions) e join accepted a
           on a.channel = e.value ->> 0 and a.number = e.value ->> 1 and a.digest = e.value ->> 2
           and a.target_partition = e.value ->> 3 and a.partition = d.partition
           where exists (select 1 from active) and not exists (select 1 from reference r
               where r.channel = a.channel and r.partition = a.partition
               and r.target_partition = a.target_partition and r.number = a.number
               and r.digest = a.digest)""",
        """select 1 from DivergentSegment d join FinalSite s on s.site = d.site
               and s.role in ('active', 'standby')
           where d.found = 'deposed' and exists (select 1 from active) and not exists
           (select 1 from DivergentSegment k where k.found = 'audit' and k.site = d.site
               and k.stage = d.stage
            and k.partition = d.partition and k.segment = d.segment and k.chain = d.chain)""",
    ],
    "S17": [
        """select 1 from owed o join takes t on t.producer = o.producer where not exists
           (select 1 from taken k where k.stage = t.stage and k.partition = o.partition
            and k.producer = o.producer and k.serial = o.serial)""",
        """select 1 from journal j, json_each(j.skipped) s where not exists
           (select 1 from taken k join PoisonDecided d on d.stage = k.stage and d.partition = k.partition
            and d.producer = k.producer and d.serial = k.serial and d.digest = k.digest
            and d.decision = 'skip'
            join owed o on o.producer = k.producer and o.partition = k.partition and o.serial = k.serial
            and o.digest = k.digest
            where k.stage = j.stage and k.partition = j.partition and k.segment = j.segment
            and k.position = s.value)""",
        """select 1 from PoisonDecided d join owed o on o.producer = d.producer
               and o.partition = d.partition
           and o.serial = d.serial and o.digest = d.digest
           where d.decision = 'skip' and not exists (select 1 from PoisonDecided later where later.at > d.at
               and later.stage = d.stage and later.partition = d.partition and later.producer = d.producer
               and later.serial = d.serial and later.digest = d.digest and later.decision <> 'skip')
           and not exists (select 1 from taken k where k.stage = d.stage and k.partition = d.partition
               and k.producer = d.producer and k.serial = d.serial and k.digest = d.digest
               and k.skipped)""",
    ],
    "S18": [
        "select 1 from mode where mode = 'exposed' and not operator and coalesce(cause, '') <> 'takeover'",
        """select 1 from Released r where r.by = 'exposure' and not coalesce(
           (select m.mode from mode m where m.epoch = r.epoch and m.at < r.at order by m.at desc limit 1)
            = 'exposed', false)""",
        """select 1 from Released r join ReplicationChanged c on c.site = r.site and c.at =
           (select max(at) from ReplicationChanged l where l.site = r.site and l.at < r.at)
           where r.by = 'gate' and not c.in_force
           and (c.lsn_sent is null or r.other_lsn_flushed > c.lsn_sent)""",
    ],
    "S19": [
        """with first as (select *, min(at) as came from SubmitInvoked group by id)
           select 1 from SubmitAccepted s join row_ a on a.id = s.id join row_ b
           on b.producer = a.producer and b.partition = a.partition and b.serial < a.serial
           join first f on f.id = b.id and f.came > s.at where f.serial is null""",
    ],
}


def broken_rules(events: Iterable[AnyEvent]) -> set[str]:
    """The rules that the history breaks, in the opinion of SQL."""
    connection = _loaded(events)
    try:
        return {
            rule for rule, queries in _RULES.items() if any(connection.execute(query).fetchone() for query in queries)
        }
    finally:
        connection.close()


JUDGED = frozenset(_RULES)


def _loaded(events: Iterable[AnyEvent]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for kind in get_args(AnyEvent):
        columns = ", ".join(f'"{name}"' for name in kind.__struct_fields__)
        connection.execute(f"create table {kind.__name__} (at, {columns})")
    connection.executescript(_NESTED)
    connection.executescript(_VIEWS)
    for at, event in enumerate(events):
        values = [at, *(_plain(getattr(event, name)) for name in event.__struct_fields__)]
        _insert(connection, type(event).__name__, values)
        _take_apart(connection, at, event)
    return connection


def _plain(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, tuple) else value


def _insert(connection: sqlite3.Connection, table: str, values: list[Any]) -> None:
    connection.execute(f"insert into {table} values ({', '.join('?' * len(values))})", values)


def _take_apart(connection: sqlite3.Connection, at: int, event: AnyEvent) -> None:
    match event:
        case FinalSegment():
            head = [event.site, event.stage, event.partition, event.segment, event.epoch]
            serials = [(run.producer, run.first_serial + i) for run in event.runs for i in range(run.count)]
            for index, (producer, serial) in enumerate(serials):
                position = event.first_position + index
                digest = event.inputs[index] if index < len(event.inputs) else None
                place = event.segment * 10**10 + at * 10**4 + index
                skipped = position in event.skipped
                _insert(connection, "record", [*head, place, position, producer, serial, digest, skipped])
            for index, e in enumerate(event.emissions):
                place = event.segment * 10**10 + at * 10**4 + index
                own = [event.lsn, place, e.channel, e.number, e.digest, e.target_partition]
                _insert(connection, "emission", [*head, *own])
        case EpochOpened():
            for cut in event.cuts:
                _insert(connection, "cut", [at, event.epoch, *json.loads(msgspec.json.encode(cut))])
        case FinalSite():
            for epoch in event.epochs:
                _insert(connection, "lineage", [event.site, epoch])
        case StageDeclared():
            for producer in event.producers:
                _insert(connection, "takes", [event.stage, producer])
        case _:
            pass


assert hop_producer("settle", 0) == "settle/0", "the view `hop` spells this name out"
