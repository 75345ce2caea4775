-- Instructions: the message log of the whole system, at both sites. A row never changes and never goes,
-- except by truncation under a role of its own.

create table if not exists zerotail.producer (
    producer integer primary key check (producer > 0),
    name     text    not null unique,
    topic    text    not null,
    consumer text    not null,
    channel  text    not null default ''
);

comment on table zerotail.producer is 'what the producer numbers in record headers and segments mean';
comment on column zerotail.producer.consumer is 'the stage whose vector says how far the records have come';
comment on column zerotail.producer.channel is 'the channel of an upstream stage, when the rows are its outbox';

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

create or replace function zerotail.never_changes() returns trigger language plpgsql as $$
begin
    raise exception '% is written once and never changed', tg_table_name using errcode = 'restrict_violation';
end
$$;

create or replace trigger instruction_never_changes
    before update on zerotail.instruction for each row execute function zerotail.never_changes();
