-- The lineage of this system's data: one row per epoch, the newest one is in force.
-- The row is the first write after a promotion. Its number, site, timeline and cut never change.

create schema if not exists zerotail;

create table if not exists zerotail.epoch (
    epoch      bigint      primary key,
    site       text        not null,
    timeline   integer     not null,
    durability text        not null check (durability in ('gated', 'exposed')),
    phase      text        not null default 'opened' check (phase in ('opened', 'live', 'draining', 'closed')),
    cut        jsonb       not null default '{}',
    cause      text        not null default 'start',
    operator   text        not null default '',
    opened_at  timestamptz not null default clock_timestamp()
);

comment on column zerotail.epoch.epoch is
    'generation * 256 + number of the site that opened it: no epoch can belong to two sites';
comment on column zerotail.epoch.durability is
    'gated: nothing leaves before the other site has it; exposed: there is no other site now';
comment on column zerotail.epoch.cut is 'what survived of the epoch before';
comment on column zerotail.epoch.operator is 'the statement of an operator that allowed this epoch, if one was needed';
