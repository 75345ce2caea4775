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
    settled     text    not null default '' check (settled in ('', 'sent', 'not sent')),
    settled_by  text    not null default '',
    primary key (channel, partition, target, number)
);
