-- Who may do what. Roles without a login: the DBA grants them to the users that log in.
--   zerotail_writer    what producers, stages, emitters and submitting services need; cannot change or remove the journal
--   zerotail_reader    looks
--   zerotail_operator  epochs, settling of doubts; ends sessions that stand still in their way; promotes
--   zerotail_truncator removes what no takeover needs any more
-- Rights that belong to the whole server are in 0009_server.sql.

do $$
declare
    name text;
begin
    foreach name in array array['zerotail_writer', 'zerotail_reader', 'zerotail_operator', 'zerotail_truncator'] loop
        if not exists (select from pg_roles where rolname = name) then
            execute format('create role %I nologin', name);
        end if;
    end loop;
end
$$;

revoke all on schema zerotail from public;
revoke all on all tables in schema zerotail from public;
grant usage on schema zerotail to zerotail_writer, zerotail_reader, zerotail_operator, zerotail_truncator;
grant select on all tables in schema zerotail to zerotail_writer, zerotail_reader, zerotail_operator, zerotail_truncator;

grant insert on zerotail.producer, zerotail.instruction, zerotail.submission, zerotail.segment, zerotail.outbox, zerotail.doubt
    to zerotail_writer;
grant delete on zerotail.submission to zerotail_writer;
grant insert, update on zerotail.head, zerotail.lane, zerotail.request to zerotail_writer;
grant insert, update, delete on zerotail.state to zerotail_writer;

grant insert, update on zerotail.epoch, zerotail.head, zerotail.rejoined, zerotail.step to zerotail_operator;
grant insert on zerotail.producer to zerotail_operator;
grant insert on zerotail.lane to zerotail_operator;
grant update on zerotail.doubt, zerotail.lane to zerotail_operator;
-- For `lock table`: a rejoin shuts out writers while it keeps the tail. Rows of three of them never change all the same.
grant update on zerotail.instruction, zerotail.submission, zerotail.segment, zerotail.outbox to zerotail_operator;

grant delete on zerotail.instruction, zerotail.segment, zerotail.outbox to zerotail_truncator;
