-- Whose rows are taken from which table. A producer with `serials: given` numbers its instructions itself, so a row that
-- it brings without a number would never get one; where the number is ours, one that leaves a gap would hold up
-- whatever comes behind it for ever; and the rows of a channel to a next stage are its outbox. All three are refused.

alter table zerotail.producer add column if not exists serials text not null default ''
    check (serials in ('', 'given', 'numbered'));

comment on column zerotail.producer.serials is
    'who numbers its instructions, as the configuration said at the last start; empty: nobody has said so yet';

grant update (serials) on zerotail.producer to zerotail_writer, zerotail_operator;

create or replace function zerotail.needs_who_numbers() returns trigger language plpgsql
    security definer set search_path = pg_catalog as $$
declare
    other record;
begin
    select name, channel into other
      from (select distinct producer from arriving) as arrived join zerotail.producer using (producer)
     where channel <> '' or serials = 'given'
     limit 1;
    if found and other.channel <> '' then
        raise exception 'producer % is the channel % of a stage: nobody else brings rows of it', other.name, other.channel
            using errcode = 'check_violation';
    elsif found then
        raise exception 'producer % numbers its instructions itself (serials: given): a row without a number is never taken',
            other.name
            using errcode = 'check_violation', hint = 'Insert into zerotail.instruction, with the next serial.';
    end if;
    return null;
end
$$;

create or replace trigger submission_needs_who_numbers
    after insert on zerotail.submission referencing new table as arriving
    for each statement execute function zerotail.needs_who_numbers();

create or replace function zerotail.needs_the_next_serial() returns trigger language plpgsql
    security definer set search_path = pg_catalog set enable_seqscan = off as $$
declare
    other record;
begin
    select producer.name, producer.channel, arrived.partition, arrived.first, arrived.last, arrived.rows into other
      from (select producer, partition, min(serial) as first, max(serial) as last, count(*) as rows
              from arriving group by producer, partition) as arrived
      join zerotail.producer using (producer)
     where channel <> ''
        or serials = 'numbered'
           and (arrived.last - arrived.first + 1 <> arrived.rows
                or arrived.first > 1 and not exists (
                   select from zerotail.instruction as before
                    where before.producer = arrived.producer and before.partition = arrived.partition
                      and before.serial = arrived.first - 1))
     limit 1;
    if found and other.channel <> '' then
        raise exception 'producer % is the channel % of a stage: nobody else brings rows of it', other.name, other.channel
            using errcode = 'check_violation';
    elsif found then
        raise exception 'serial % of % would leave a gap in partition %, and whatever comes behind it would wait for ever',
            case when other.last - other.first + 1 <> other.rows then other.last else other.first end,
            other.name, other.partition
            using errcode = 'check_violation', hint = 'zerotail numbers its rows: insert into zerotail.submission.';
    end if;
    return null;
end
$$;

create or replace trigger instruction_needs_the_next_serial
    after insert on zerotail.instruction referencing new table as arriving
    for each statement execute function zerotail.needs_the_next_serial();
