-- Lives: each start of a primary is one. Between two of them the end of its log may have been lost (a snapshot of the
-- storage was restored, a disk lied about what it had flushed), and the other site may hold what is gone here. So nobody
-- writes in a life before somebody has made sure that the other site holds no more, or is out; who has says so here,
-- with a nonce that is asked for at the gate.

create table if not exists zerotail.life (
    number      bigint      primary key,
    nonce       uuid        not null unique default gen_random_uuid(),
    started_at  timestamptz not null,
    system      bigint      not null,
    timeline    integer     not null,
    verified_at timestamptz
);

comment on table zerotail.life is 'starts of a primary; the newest row is in force while that server runs, once it is verified';
comment on column zerotail.life.verified_at is 'when the other site had applied the nonce, or was known to be out';
comment on column zerotail.life.nonce is 'the gate opens only for a standby that has replayed it: that one follows this very life';

revoke all on zerotail.life from public;
grant select on zerotail.life to zerotail_writer, zerotail_reader, zerotail_operator, zerotail_truncator;
grant insert, update (verified_at) on zerotail.life to zerotail_writer, zerotail_operator;

-- The nonce of the life that runs, if it has one; null while it is not verified, unless asked for that, too. For a
-- primary only.
create or replace function zerotail.life_in_force(unverified boolean default false) returns uuid language sql stable
    security definer set search_path = pg_catalog as $$
    select nonce from (select * from zerotail.life order by number desc limit 1) as newest
     where started_at = pg_postmaster_start_time()
       and system = (select system_identifier from pg_control_system())
       and timeline = ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int
       and (unverified or verified_at is not null)
$$;

create or replace function zerotail.needs_a_verified_life() returns trigger language plpgsql
    security definer set search_path = pg_catalog as $$
begin
    -- A plain restart is verified within a second or two: whoever inserts meanwhile waits for it.
    for attempt in 1..30 loop
        if zerotail.life_in_force() is not null or not exists (select from zerotail.epoch) then
            return null;
        end if;
        perform pg_sleep(0.1);
    end loop;
    raise exception 'this database was started anew, and nobody has made sure yet that the other site holds no more of its log'
        using errcode = 'read_only_sql_transaction', hint = 'The processes of this site do that; zerotail status says what they wait for.';
end
$$;

create or replace trigger instruction_needs_a_verified_life
    before insert on zerotail.instruction for each statement execute function zerotail.needs_a_verified_life();
create or replace trigger submission_needs_a_verified_life
    before insert on zerotail.submission for each statement execute function zerotail.needs_a_verified_life();
create or replace trigger segment_needs_a_verified_life
    before insert on zerotail.segment for each statement execute function zerotail.needs_a_verified_life();

-- Whoever was at work when this table was made goes on.
do $$
begin
    if exists (select from zerotail.epoch) and not exists (select from zerotail.life) then
        insert into zerotail.life (number, verified_at, started_at, system, timeline)
        select 1, clock_timestamp(), pg_postmaster_start_time(), system_identifier,
               ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int
          from pg_control_system();
    end if;
end
$$;
