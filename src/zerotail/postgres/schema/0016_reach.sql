-- How far trouble reaches: lanes that stop alone, and records that stop one partition.

-- A receiver that stands where our history cannot have brought it stops its lane until a person says that it may go on.
-- That is stored: the numbers that it had too many would be given by and by, and what they stand for here would be left
-- out without a word.

alter table zerotail.lane add column if not exists stopped text not null default '';
alter table zerotail.lane add column if not exists stopped_at timestamptz;
alter table zerotail.lane add column if not exists resumed_by text not null default '';

comment on column zerotail.lane.stopped is 'why nothing is sent on this lane until somebody says that it may go on; empty when it may';

-- A record of a topic that is none of our instructions, and cannot be passed over: producer 0, and as serial the offset
-- plus 1. It stops its partition where that topic is read, and nowhere else.

alter table zerotail.poison add column if not exists log text not null default '';

comment on column zerotail.poison.log is 'of a record that is no instruction (producer 0): in which log it lies, at the offset serial - 1; a skipped one has no place in the order';

-- Who sent to a receiver without memory before its numbers were listed may still send for a moment: they are settled
-- only behind that.

alter table zerotail.doubt add column if not exists listed_at timestamptz not null default '2000-01-01 00:00:00+00';
alter table zerotail.doubt alter column listed_at set default clock_timestamp();

comment on column zerotail.doubt.listed_at is 'by this database; an older sender sends nothing more some seconds later';

-- Which code made the segments of a stage is asked before each takeover that would replay them.

create index if not exists segment_by_version on zerotail.segment (stage, version, segment);
