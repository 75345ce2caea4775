-- What is owed to the outside. A lane is a channel, the partition of the stage the messages came from and, for a channel
-- that is a topic, the target partition; numbers are dense per lane.

create table if not exists zerotail.lane (
    channel      text    not null,
    partition    integer not null,
    target       integer not null,
    epoch        bigint  not null,
    incarnation  bigint  not null,
    acknowledged bigint  not null,
    intended     bigint  not null,
    primary key (channel, partition, target)
) with (fillfactor = 50);

comment on column zerotail.lane.incarnation is 'which start of a sender this is; a sender that reads another one has been replaced';
comment on column zerotail.lane.intended is 'receivers that remember nothing: the highest number that may have been sent';

create table if not exists zerotail.outbox (
    channel      text    not null,
    partition    integer not null,
    target       integer not null,
    first_number bigint  not null,
    count        integer not null,
    messages     bytea   not null,
    segment      bigint  not null,
    primary key (channel, partition, target, first_number)
);

comment on column zerotail.outbox.segment is 'the segment of the stage that owes them: with it the chain over emissions can be computed again';
comment on column zerotail.outbox.messages is 'the messages of one segment: each a length of 4 bytes, little endian, and its bytes';

create or replace trigger outbox_never_changes
    before update on zerotail.outbox for each row execute function zerotail.never_changes();
create or replace trigger outbox_goes_by_truncation
    before delete on zerotail.outbox for each row execute function zerotail.goes_by_truncation();
create or replace trigger outbox_is_not_emptied
    before truncate on zerotail.outbox for each statement execute function zerotail.goes_by_truncation();

create table if not exists zerotail.doubt (
    channel     text    not null,
    partition   integer not null,
    target      integer not null,
    number      bigint  not null,
    epoch       bigint  not null,
    incarnation bigint  not null,
    settled     text    not null default '' check (settled in ('', 'sent', 'not sent')),
    settled_by  text    not null default '',
    settled_at  timestamptz,
    primary key (channel, partition, target, number, incarnation)
);

comment on table zerotail.doubt is 'numbers that may or may not have arrived, as each sender that started found them, and what an operator decided';


-- What each lane still owes. A lane to a topic of ours is acknowledged by the head of the stage that reads it.
create or replace view zerotail.owed as
select head.stage, said.channel, head.partition, said.target, reader.taken is not null as to_topic,
       said.journaled, known.acknowledged, greatest(coalesce(lane.intended, 0), known.acknowledged) as intended,
       greatest(said.journaled - known.acknowledged, 0) as messages, waiting.bytes
  from zerotail.head
 cross join lateral (
       select entry ->> 0 as channel, (entry ->> 1)::integer as target, (entry ->> 2)::bigint as journaled
         from jsonb_array_elements(head.numbers) as entry) as said
  left join zerotail.lane
    on lane.channel = said.channel and lane.partition = head.partition and lane.target = said.target
  left join lateral (
       select coalesce((consumer.vector ->> producer.producer::text)::bigint, 0) as taken
         from zerotail.producer
         join zerotail.head as consumer on consumer.stage = producer.consumer and consumer.partition = said.target
        where producer.channel = said.channel and producer.source_partition = head.partition) as reader on true
 cross join lateral (select coalesce(reader.taken, lane.acknowledged, 0) as acknowledged) as known
 cross join lateral (
       select coalesce(sum(octet_length(outbox.messages)), 0)::bigint as bytes
         from zerotail.outbox
        where outbox.channel = said.channel and outbox.partition = head.partition and outbox.target = said.target
          and outbox.first_number + outbox.count > known.acknowledged + 1
          and outbox.first_number >= coalesce((
              select max(before.first_number) from zerotail.outbox as before
               where before.channel = said.channel and before.partition = head.partition
                 and before.target = said.target and before.first_number <= known.acknowledged + 1), 0)) as waiting;

comment on view zerotail.owed is 'per lane: last number given, last number acknowledged, and what lies between them; bytes counts whole outbox rows';
