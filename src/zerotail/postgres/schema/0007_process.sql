-- What processes say of themselves: for people who look, never for a decision. A row is replaced by the next word of the
-- same process; one that says nothing for some seconds is silent, whatever its last word was.

create table if not exists zerotail.process (
    site      text        not null,
    role      text        not null check (role in ('producer', 'stage', 'emitter', 'follower', 'watcher')),
    name      text        not null,
    partition integer     not null default -1 check (partition >= -1),
    pid       integer     not null,
    host      text        not null,
    doing     text        not null check (doing in ('working', 'waiting', 'stopped')),
    reason    text        not null default '',
    since     timestamptz not null default clock_timestamp(),
    seen_at   timestamptz not null default clock_timestamp(),
    counters  jsonb       not null default '{}',
    primary key (site, role, name, partition)
) with (fillfactor = 50);

comment on column zerotail.process.partition is '-1: the process as a whole';
comment on column zerotail.process.reason is 'why it waits or has stopped; empty while it works';
comment on column zerotail.process.since is 'since when it does this for this reason';
comment on column zerotail.process.counters is 'sums since the process began, and measures, by name; null is one that nobody knows';

revoke all on zerotail.process from public;
grant select on zerotail.process to zerotail_writer, zerotail_reader, zerotail_operator, zerotail_truncator;
grant insert, update, delete on zerotail.process to zerotail_writer;
grant insert, update on zerotail.process to zerotail_operator;
