-- The bad day: which sites came back, and how far a takeover has come.

create table if not exists zerotail.rejoined (
    site  text   primary key,
    epoch bigint not null
);

comment on table zerotail.rejoined is 'in which epoch a site came back: its topics carry that number in their names';

create table if not exists zerotail.step (
    epoch   bigint      not null,
    step    integer     not null,
    site    text        not null,
    done_at timestamptz not null default clock_timestamp(),
    primary key (epoch, step)
);
