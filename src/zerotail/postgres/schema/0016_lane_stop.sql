-- A receiver that stands where our history cannot have brought it stops its lane until a person says that it may go on.
-- That is stored: the numbers that it had too many would be given by and by, and what they stand for here would be left
-- out without a word.

alter table zerotail.lane add column if not exists stopped text not null default '';
alter table zerotail.lane add column if not exists stopped_at timestamptz;
alter table zerotail.lane add column if not exists resumed_by text not null default '';

comment on column zerotail.lane.stopped is 'why nothing is sent on this lane until somebody says that it may go on; empty when it may';
