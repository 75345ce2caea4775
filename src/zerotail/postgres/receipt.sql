-- For a database that receives messages from zerotail and is not part of it. Run once by its DBA.
-- The receipt holds, per lane, the last number that had its effect and the newest sender. It is written in the transaction
-- of the effect. The sender needs select, insert and update on it.

create table if not exists zerotail_receipt (
    channel     text    not null,
    partition   integer not null,
    target      integer not null,
    number      bigint  not null, -- the last one that had its effect
    epoch       bigint  not null, -- in which it was sent
    claim_epoch bigint  not null, -- of the newest sender,
    incarnation bigint  not null, -- together with this
    primary key (channel, partition, target)
);

-- Where messages go when no statement of your own is configured; the configuration names the table.
create table if not exists inbox (
    channel            text        not null,
    partition          integer     not null,
    number             bigint      not null,
    possible_duplicate boolean     not null,
    value              bytea       not null,
    arrived_at         timestamptz not null default clock_timestamp(),
    primary key (channel, partition, number)
);
