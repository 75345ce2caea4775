-- Who is who. A site's number is part of every epoch that it opens, so no two sites may ever have the same: it is drawn
-- once, when the first epoch is opened, and read from here ever after.

create table if not exists zerotail.site (
    site   text    primary key,
    number integer not null unique check (number between 0 and 255)
);

comment on table zerotail.site is 'the sites of this system; their numbers never change';

revoke all on zerotail.site from public;
grant select on zerotail.site to zerotail_writer, zerotail_reader, zerotail_operator, zerotail_truncator;
