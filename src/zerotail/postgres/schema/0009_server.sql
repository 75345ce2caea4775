-- Rights that belong to the whole server, which a superuser gives. Whoever runs this and may not give one is told which
-- lines are left for a superuser to run in this database; everything else works without them.
--   pg_read_all_stats   to see whether and what the other site's database receives: without it the gate stays closed
--   pg_signal_backend   to end sessions that hold locks and stand still
--   pg_promote …        to make a standby the primary; with a `takeover.promote` of your own not needed
--   pg_checkpoint       to see, behind a handover's stop, whether the copy has the very end of the log (PostgreSQL 15)
--   alter system …      to let commits wait for nobody, or for the standby again (PostgreSQL 15 and later can grant it);
--                       of the writer: at a standby, to receive no more log of a primary that has lost the end of its own

do $$
declare
    wanted text[];
    is_there boolean;
    missing text := '';
begin
    foreach wanted slice 1 in array array[
        ['grant pg_read_all_stats to zerotail_writer', $q$pg_has_role('zerotail_writer', 'pg_read_all_stats', 'usage')$q$],
        ['grant pg_read_all_stats to zerotail_reader', $q$pg_has_role('zerotail_reader', 'pg_read_all_stats', 'usage')$q$],
        ['grant pg_read_all_stats to zerotail_operator', $q$pg_has_role('zerotail_operator', 'pg_read_all_stats', 'usage')$q$],
        ['grant pg_signal_backend to zerotail_operator', $q$pg_has_role('zerotail_operator', 'pg_signal_backend', 'usage')$q$],
        ['grant execute on function pg_promote(boolean, integer) to zerotail_operator',
         $q$has_function_privilege('zerotail_operator', 'pg_promote(boolean, integer)', 'execute')$q$],
        ['grant execute on function pg_reload_conf() to zerotail_operator',
         $q$has_function_privilege('zerotail_operator', 'pg_reload_conf()', 'execute')$q$],
        ['grant execute on function pg_reload_conf() to zerotail_writer',
         $q$has_function_privilege('zerotail_writer', 'pg_reload_conf()', 'execute')$q$],
        ['grant pg_checkpoint to zerotail_operator',
         $q$exists (select from pg_roles where rolname = 'pg_checkpoint')
            and pg_has_role('zerotail_operator', (select oid from pg_roles where rolname = 'pg_checkpoint'), 'usage')$q$],
        ['grant alter system on parameter synchronous_standby_names to zerotail_operator',
         $q$has_parameter_privilege('zerotail_operator', 'synchronous_standby_names', 'alter system')$q$],
        ['grant alter system on parameter primary_conninfo to zerotail_writer',
         $q$has_parameter_privilege('zerotail_writer', 'primary_conninfo', 'alter system')$q$]
    ] loop
        continue when wanted[1] similar to '%( on parameter |pg_checkpoint)%' and current_setting('server_version_num')::int < 150000;
        execute 'select ' || wanted[2] into is_there;
        continue when is_there;
        begin
            execute wanted[1];
        exception when insufficient_privilege then
            null;  -- said below
        end;
        execute 'select ' || wanted[2] into is_there;
        if not is_there then
            missing := missing || e'\n  ' || wanted[1] || ';';
        end if;
    end loop;
    if missing <> '' then
        raise warning 'a superuser has to run in this database:%', missing;
    end if;
end
$$;
