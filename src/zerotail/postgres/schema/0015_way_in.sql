-- The way in is shut while a site drains, whoever brings the row: `submit`, the spool, or SQL. It is not the phase that
-- shuts it but whoever drains, by a lock of its session on a word: so it waits for every transaction that has inserted
-- already, and when it is killed, the way in opens again.

create or replace function zerotail.drains() returns boolean language sql
    security definer set search_path = pg_catalog as $$
    select coalesce((select phase = 'draining'
                            and timeline = ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int
                       from zerotail.epoch order by epoch desc limit 1), false)
$$;

-- Whether nobody drains. A drain that nobody holds any more ends with that, in the transaction that asks: it has to be a
-- short one of our processes, for whoever else asks waits for the epoch's row until it has ended.
create or replace function zerotail.end_drain() returns boolean language plpgsql
    security definer set search_path = pg_catalog as $$
begin
    if not pg_try_advisory_xact_lock_shared(hashtextextended('zerotail: the way in', 0)) then
        return false;
    end if;
    if zerotail.drains() then
        -- A server that shuts down ends whoever drains as well; a session that outlives him by a moment ends in here.
        perform pg_sleep(1);
        update zerotail.epoch set phase = 'live'
         where epoch = (select max(epoch) from zerotail.epoch) and phase = 'draining';
    end if;
    return true;
end
$$;

-- Whoever brings a row only looks: the end of a drain that nobody holds has to be in the log in front of the row, and a
-- transaction of the business may be a long one. The processes of the site end it within a second or two.
create or replace function zerotail.way_in_is_open() returns boolean language plpgsql
    security definer set search_path = pg_catalog as $$
begin
    if not pg_try_advisory_xact_lock_shared(hashtextextended('zerotail: the way in', 0)) then
        return false;
    end if;
    for attempt in 1..50 loop
        if not zerotail.drains() then
            return true;
        end if;
        perform pg_sleep(0.1);
    end loop;
    return false;
end
$$;

-- Numbering takes no rows in: it goes on with those that are there.
create or replace function zerotail.needs_an_open_way_in() returns trigger language plpgsql
    security definer set search_path = pg_catalog as $$
begin
    if current_setting('zerotail.numbering', true) is distinct from 'on' and not zerotail.way_in_is_open() then
        raise exception 'this site hands its role over and takes nothing new until that is done'
            using errcode = 'read_only_sql_transaction',
                  hint = 'Insert again in a moment, at the site that is active then: zerotail handover status';
    end if;
    return null;
end
$$;

create or replace trigger instruction_needs_an_open_way_in
    before insert on zerotail.instruction for each statement execute function zerotail.needs_an_open_way_in();
create or replace trigger submission_needs_an_open_way_in
    before insert on zerotail.submission for each statement execute function zerotail.needs_an_open_way_in();

-- A row that cannot become a record is poison before Kafka: it stops its own producer and partition. Once somebody has
-- decided, its record goes out without a value, and the stage carries the decision out.
alter table zerotail.poison add column if not exists at_door boolean not null default false;

comment on column zerotail.poison.at_door is
    'its producer could not make a record of it; the digest is that of the row, and -1 is the position until the stage meets it';

-- Rows are numbered in the order in which the database took them: each draws its turn when it is inserted, and a clock
-- that is set back changes nothing. Those that wait already get theirs by their place in the table.
do $$
begin
    if not exists (select from pg_attribute where attrelid = 'zerotail.submission'::regclass and attname = 'turn') then
        alter table zerotail.submission add column turn bigint not null generated always as identity;
    end if;
end
$$;

comment on column zerotail.submission.turn is 'in which order the database took the rows: they are numbered by it';
comment on column zerotail.submission.submitted_at is 'for people who look; nothing is decided by it';

-- After an outage of the numbering millions may wait.
drop index if exists zerotail.submission_turn;
create index if not exists submission_by_turn on zerotail.submission (producer, partition, turn);
