-- Which installation this is. Topics and receivers outlive a database: one that is made anew, or loaded from a dump,
-- begins again at low numbers, and what its predecessor left there bears the same ones. Hence every record, and whatever
-- goes to a receiver, says which installation it comes from.

create table if not exists zerotail.installation (
    one              boolean primary key default true check (one),
    identity         bytea   not null check (octet_length(identity) = 16),
    accepts_unmarked boolean not null,
    home             text    not null
);

comment on table zerotail.installation is 'one row: it is made with the first epoch, and anew when tables come from a dump';
comment on column zerotail.installation.accepts_unmarked is
    'records without an identity are its own: it has begun before there were identities';
comment on column zerotail.installation.home is
    'where the tables lay when the identity was made: a physical copy has the same home, tables from a dump have another';

create or replace function zerotail.home() returns text language plpgsql stable set search_path = pg_catalog as $$
begin
    return concat_ws('/', (select system_identifier from pg_control_system()),
                     (select oid from pg_database where datname = current_database()),
                     'zerotail.installation'::regclass::oid);
end
$$;

revoke all on zerotail.installation from public;
grant select on zerotail.installation to zerotail_writer, zerotail_reader, zerotail_operator, zerotail_truncator;

-- Tables that were loaded from a dump take nothing in before somebody has said so (`schema apply --restored`): what came
-- after the dump is still in topics and at receivers, under the numbers that would be given now.
create or replace function zerotail.needs_its_home() returns trigger language plpgsql
    security definer set search_path = pg_catalog as $$
begin
    if exists (select from zerotail.installation where split_part(home, '/', 3)::oid <> 'zerotail.installation'::regclass) then
        raise exception 'the tables of this database were loaded from a dump, and nobody has said so yet'
            using errcode = 'read_only_sql_transaction', hint = 'zerotail schema apply --restored --site S';
    end if;
    return null;
end
$$;

create or replace trigger instruction_needs_its_home
    before insert on zerotail.instruction for each statement execute function zerotail.needs_its_home();
create or replace trigger submission_needs_its_home
    before insert on zerotail.submission for each statement execute function zerotail.needs_its_home();
create or replace trigger segment_needs_its_home
    before insert on zerotail.segment for each statement execute function zerotail.needs_its_home();
