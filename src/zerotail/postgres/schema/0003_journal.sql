-- The order journal and what goes with it: one row per stage and partition says how far it has come (head), one row per
-- micro-batch says what it took and in which order (segment), and the state belongs to the stage, partition and key.

create table if not exists zerotail.head (
    stage         text    not null,
    partition     integer not null,
    epoch         bigint  not null references zerotail.epoch,
    segment       bigint  not null,
    next_position bigint  not null,
    vector        jsonb   not null,
    numbers       jsonb   not null,
    chain         bytea   not null,
    output_chain  bytea   not null,
    decided_at    bigint  not null,
    hint_log      text,
    hint_offset   bigint,
    claim         bigint  not null default 0,
    primary key (stage, partition)
) with (fillfactor = 50);

comment on column zerotail.head.vector is 'last serial taken, by producer number';
comment on column zerotail.head.numbers is 'last emission number, by channel and target partition';
comment on column zerotail.head.decided_at is 'time of the last segment in microseconds; the handler''s clock never falls below it';
comment on column zerotail.head.hint_offset is 'where reading may go on in the log hint_log: a hint, never a truth';

comment on column zerotail.head.claim is 'how often a writer has started here: the newest one goes on, older ones are refused';

create table if not exists zerotail.segment (
    stage          text    not null,
    partition      integer not null,
    segment        bigint  not null,
    epoch          bigint  not null,
    first_position bigint  not null,
    producers      integer[] not null,
    counts         integer[] not null,
    first_serials  bigint[]  not null,
    record_order   bytea   not null,
    decided_at     bigint  not null,
    version        text    not null,
    chain          bytea   not null,
    output_chain   bytea   not null,
    decided        bytea,
    primary key (stage, partition, segment)
);

comment on column zerotail.segment.counts is 'records taken of each of the producers: in the clear, so that density can be checked by SQL';
comment on column zerotail.segment.decided is 'what operators decided about records of this segment, as JSON; mostly nothing';
comment on column zerotail.segment.record_order is 'in which order they were taken, packed';

create or replace trigger segment_never_changes
    before update on zerotail.segment for each row execute function zerotail.never_changes();
create or replace trigger segment_goes_by_truncation
    before delete on zerotail.segment for each row execute function zerotail.goes_by_truncation();
create or replace trigger segment_is_not_emptied
    before truncate on zerotail.segment for each statement execute function zerotail.goes_by_truncation();

create table if not exists zerotail.state (
    stage     text    not null,
    partition integer not null,
    key       text    not null,
    value     bytea   not null,
    primary key (stage, partition, key)
) with (fillfactor = 80);

create table if not exists zerotail.request (
    producer  integer not null,
    partition integer not null,
    number    bigint  not null,
    serial    bigint  not null,
    primary key (producer, partition)
);

comment on table zerotail.request is 'a stage that found a gap asks a producer to send again from this serial on; the number counts the requests';
