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

-- Whose lane it is: another installation is refused. Empty for one that has no identity.
alter table zerotail_receipt add column if not exists installation text not null default '';

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

-- Numbers are dense within an installation: equal ones of another are other messages.
do $$
begin
    if not exists (select from pg_attribute where attrelid = 'inbox'::regclass and attname = 'installation') then
        alter table inbox add column installation text not null default '';
        alter table inbox drop constraint inbox_pkey, add primary key (channel, partition, number, installation);
    end if;
end
$$;
