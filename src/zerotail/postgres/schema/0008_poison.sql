-- Records that stopped a partition. A stage writes the row, an operator decides; the decision becomes part of the segment
-- that takes the record. A skipped or replaced record is never decided about again.

create table if not exists zerotail.poison (
    stage       text        not null,
    partition   integer     not null,
    producer    integer     not null,
    serial      bigint      not null,
    position    bigint      not null,
    digest      bytea       not null,
    reason      text        not null,
    found_at    timestamptz not null default clock_timestamp(),
    attempts    integer     not null default 1,
    decision    text        not null default '' check (decision in ('', 'retry', 'skip', 'replace')),
    replacement bytea,
    decided_by  text        not null default '',
    decided_at  timestamptz,
    primary key (stage, partition, producer, serial),
    check ((decision = 'replace') = (replacement is not null))
);

comment on column zerotail.poison.digest is 'of the record that was met; a decision does not hold for other bytes';
comment on column zerotail.poison.attempts is 'how often the partition has stopped at this record';

grant insert, update on zerotail.poison to zerotail_writer;
grant update on zerotail.poison to zerotail_operator;
grant select on zerotail.poison to zerotail_writer, zerotail_reader, zerotail_operator, zerotail_truncator;
