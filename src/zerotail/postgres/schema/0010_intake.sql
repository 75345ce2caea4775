-- What is acknowledged can be processed. A row for a partition that no stage has, under a name that belongs to another
-- instruction, or with a value that no record can hold, is refused by the statement that brings it. What turns out to be another instruction only when it is
-- numbered, because its name was taken in between, is set aside: kept, counted, and for people to decide about. A row
-- stays when it was decided on, with the decision and who took it.

create table if not exists zerotail.set_aside (
    number        bigint      primary key generated always as identity,
    producer      integer     not null references zerotail.producer,
    partition     integer     not null,
    id            text        not null,
    value         bytea       not null,
    submitted_at  timestamptz not null,
    reason        text        not null,
    found_at      timestamptz not null default clock_timestamp(),
    decision      text        not null default '' check (decision in ('', 'dropped', 'resubmitted')),
    decided_by    text        not null default '',
    decided_at    timestamptz,
    new_id        text,
    new_partition integer,
    new_serial    bigint,
    check ((decision = 'resubmitted') = (num_nulls(new_id, new_partition, new_serial) = 0))
);

create index if not exists set_aside_open on zerotail.set_aside (number) where decision = '';

comment on column zerotail.set_aside.new_serial is 'of the instruction that the row became, with new_id, in new_partition';
comment on table zerotail.set_aside is 'rows that could not become instructions, although whoever brought them was told that they were stored';

revoke all on zerotail.set_aside from public;
grant select on zerotail.set_aside to zerotail_writer, zerotail_reader, zerotail_operator, zerotail_truncator;
grant insert on zerotail.set_aside to zerotail_writer;
grant update (decision, decided_by, decided_at, new_id, new_partition, new_serial) on zerotail.set_aside
    to zerotail_operator;

-- The head of a stage's partition is there before anything is sent to it: who has no head is nobody's.
create or replace function zerotail.needs_a_partition() returns trigger language plpgsql
    security definer set search_path = pg_catalog as $$
declare
    lost record;
begin
    select producer.name, producer.consumer, arrived.partition,
           (select count(*) from zerotail.head where stage = producer.consumer) as partitions
      into lost
      from (select distinct producer, partition from arriving) as arrived
      join zerotail.producer on producer.producer = arrived.producer
     where not exists (select from zerotail.head
                        where head.stage = producer.consumer and head.partition = arrived.partition)
     limit 1;
    if found then
        raise exception 'stage % takes what % submits in % partitions, and partition % is not one of them',
            lost.consumer, lost.name, lost.partitions, lost.partition
            using errcode = 'foreign_key_violation', hint = 'Partitions are counted from 0.';
    end if;
    return null;
end
$$;

create or replace trigger instruction_needs_a_partition
    after insert on zerotail.instruction referencing new table as arriving
    for each statement execute function zerotail.needs_a_partition();
create or replace trigger submission_needs_a_partition
    after insert on zerotail.submission referencing new table as arriving
    for each statement execute function zerotail.needs_a_partition();

-- The limit is MOST_VALUE_BYTES of zerotail.core.intake.
create or replace function zerotail.needs_a_value_that_fits() returns trigger language plpgsql
    security definer set search_path = pg_catalog as $$
declare
    large record;
begin
    select producer.name, arriving.id, octet_length(arriving.value) as bytes
      into large
      from arriving join zerotail.producer on producer.producer = arriving.producer
     where octet_length(arriving.value) > 900000
     limit 1;
    if found then
        raise exception 'a value has 900000 bytes at most, and that of % of % has %', large.id, large.name, large.bytes
            using errcode = 'check_violation', hint = 'What is larger does not fit into a record.';
    end if;
    return null;
end
$$;

create or replace trigger instruction_needs_a_value_that_fits
    after insert on zerotail.instruction referencing new table as arriving
    for each statement execute function zerotail.needs_a_value_that_fits();
create or replace trigger submission_needs_a_value_that_fits
    after insert on zerotail.submission referencing new table as arriving
    for each statement execute function zerotail.needs_a_value_that_fits();

-- The same instruction again is welcome: somebody did not hear the answer. What is known is asked row by row, since a
-- database that was promoted a moment ago has no statistics, and would read the whole history for a join.
create or replace function zerotail.needs_a_free_name() returns trigger language plpgsql
    security definer set search_path = pg_catalog set enable_seqscan = off as $$
declare
    taken record;
begin
    select producer.name, arriving.id, known.serial, known.partition
      into taken
      from arriving
     cross join lateral (select serial, partition, value from zerotail.instruction as row
                          where row.producer = arriving.producer and row.id = arriving.id limit 1) as known
      join zerotail.producer on producer.producer = arriving.producer
     where known.value <> arriving.value or known.partition <> arriving.partition
     limit 1;
    if found then
        raise exception 'the identifier % of % belongs to another instruction: serial % of partition %',
            taken.id, taken.name, taken.serial, taken.partition using errcode = 'unique_violation';
    end if;
    return null;
end
$$;

create or replace trigger submission_needs_a_free_name
    after insert on zerotail.submission referencing new table as arriving
    for each statement execute function zerotail.needs_a_free_name();
