-- Instructions: the message log of the whole system, at both sites. A row never changes and never goes,
-- except by truncation under a role of its own.

create table if not exists zerotail.producer (
    producer integer primary key check (producer > 0),
    name     text    not null unique,
    topic    text    not null,
    consumer text    not null,
    channel  text    not null default '',
    source_partition integer not null default 0
);

comment on table zerotail.producer is 'what the producer numbers in record headers and segments mean';
comment on column zerotail.producer.consumer is 'the stage whose vector says how far the records have come';
comment on column zerotail.producer.channel is 'the channel of an upstream stage, when the rows are its outbox';
comment on column zerotail.producer.source_partition is 'the partition of that stage: each of them is a producer of its own';

create table if not exists zerotail.instruction (
    producer     integer     not null references zerotail.producer,
    partition    integer     not null check (partition >= 0),
    serial       bigint      not null check (serial > 0),
    id           text        not null,
    value        bytea       not null,
    submitted_at timestamptz not null default clock_timestamp(),
    primary key (producer, partition, serial),
    unique (producer, id)
);

-- Rows that come without a serial wait here until they are numbered. Several writers may insert at once: none waits
-- for another, and none is passed over, because numbering takes whatever is here and never looks for "the next".
create table if not exists zerotail.submission (
    producer     integer     not null references zerotail.producer,
    partition    integer     not null check (partition >= 0),
    id           text        not null,
    value        bytea       not null,
    submitted_at timestamptz not null default clock_timestamp(),
    primary key (producer, id)
);

-- Between a promotion and the new epoch nobody gives out serials: the cut of that epoch would cover one that a lost row
-- had, and its record, which is still in Kafka, would be applied in place of the new row.
create or replace function zerotail.needs_own_timeline() returns trigger language plpgsql
    security definer set search_path = pg_catalog as $$
begin
    if (select timeline from zerotail.epoch order by epoch desc limit 1)
       <> ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int then
        raise exception 'this database was promoted and has no epoch of its own yet'
            using errcode = 'read_only_sql_transaction';
    end if;
    return null;
end
$$;

create or replace trigger instruction_needs_own_timeline
    before insert on zerotail.instruction for each statement execute function zerotail.needs_own_timeline();

create or replace function zerotail.never_changes() returns trigger language plpgsql as $$
begin
    raise exception '% is written once and never changed', tg_table_name using errcode = 'restrict_violation';
end
$$;

-- Removing rows is the work of one role: whoever else tries, the tables' owner and a superuser included, is stopped.
create or replace function zerotail.goes_by_truncation() returns trigger language plpgsql as $$
begin
    if tg_op = 'TRUNCATE' or current_user <> 'zerotail_truncator' then
        raise exception 'rows of % are removed by the role zerotail_truncator and by no other', tg_table_name
            using errcode = 'restrict_violation';
    end if;
    return old;
end
$$;

create or replace trigger instruction_never_changes
    before update on zerotail.instruction for each row execute function zerotail.never_changes();
create or replace trigger instruction_goes_by_truncation
    before delete on zerotail.instruction for each row execute function zerotail.goes_by_truncation();
create or replace trigger instruction_is_not_emptied
    before truncate on zerotail.instruction for each statement execute function zerotail.goes_by_truncation();
