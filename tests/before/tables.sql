--
-- PostgreSQL database dump
--



SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: zerotail; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA zerotail;


--
-- Name: goes_by_truncation(); Type: FUNCTION; Schema: zerotail; Owner: -
--

CREATE FUNCTION zerotail.goes_by_truncation() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'TRUNCATE' or current_user <> 'zerotail_truncator' then
        raise exception 'rows of % are removed by the role zerotail_truncator and by no other', tg_table_name
            using errcode = 'restrict_violation';
    end if;
    return old;
end
$$;


--
-- Name: needs_own_timeline(); Type: FUNCTION; Schema: zerotail; Owner: -
--

CREATE FUNCTION zerotail.needs_own_timeline() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog'
    AS $$
begin
    if (select timeline from zerotail.epoch order by epoch desc limit 1)
       <> ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int then
        raise exception 'this database was promoted and has no epoch of its own yet'
            using errcode = 'read_only_sql_transaction';
    end if;
    return null;
end
$$;


--
-- Name: never_changes(); Type: FUNCTION; Schema: zerotail; Owner: -
--

CREATE FUNCTION zerotail.never_changes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise exception '% is written once and never changed', tg_table_name using errcode = 'restrict_violation';
end
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: doubt; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.doubt (
    channel text NOT NULL,
    partition integer NOT NULL,
    target integer NOT NULL,
    number bigint NOT NULL,
    epoch bigint NOT NULL,
    incarnation bigint NOT NULL,
    settled text DEFAULT ''::text NOT NULL,
    settled_by text DEFAULT ''::text NOT NULL,
    settled_at timestamp with time zone,
    CONSTRAINT doubt_settled_check CHECK ((settled = ANY (ARRAY[''::text, 'sent'::text, 'not sent'::text])))
);


--
-- Name: TABLE doubt; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON TABLE zerotail.doubt IS 'numbers that may or may not have arrived, as each sender that started found them, and what an operator decided';


--
-- Name: epoch; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.epoch (
    epoch bigint NOT NULL,
    site text NOT NULL,
    timeline integer NOT NULL,
    durability text NOT NULL,
    phase text DEFAULT 'opened'::text NOT NULL,
    cut jsonb DEFAULT '{}'::jsonb NOT NULL,
    cause text DEFAULT 'start'::text NOT NULL,
    operator text DEFAULT ''::text NOT NULL,
    opened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT epoch_durability_check CHECK ((durability = ANY (ARRAY['gated'::text, 'exposed'::text]))),
    CONSTRAINT epoch_phase_check CHECK ((phase = ANY (ARRAY['opened'::text, 'live'::text, 'draining'::text, 'closed'::text])))
);


--
-- Name: COLUMN epoch.epoch; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.epoch.epoch IS 'generation * 256 + number of the site that opened it: no epoch can belong to two sites';


--
-- Name: COLUMN epoch.durability; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.epoch.durability IS 'gated: nothing leaves before the other site has it; exposed: there is no other site now';


--
-- Name: COLUMN epoch.cut; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.epoch.cut IS 'what survived of the epoch before';


--
-- Name: COLUMN epoch.operator; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.epoch.operator IS 'the statement of an operator that allowed this epoch, if one was needed';


--
-- Name: head; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.head (
    stage text NOT NULL,
    partition integer NOT NULL,
    epoch bigint NOT NULL,
    segment bigint NOT NULL,
    next_position bigint NOT NULL,
    vector jsonb NOT NULL,
    numbers jsonb NOT NULL,
    chain bytea NOT NULL,
    output_chain bytea NOT NULL,
    decided_at bigint NOT NULL,
    hint_log text,
    hint_offset bigint,
    claim bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');


--
-- Name: COLUMN head.vector; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.head.vector IS 'last serial taken, by producer number';


--
-- Name: COLUMN head.numbers; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.head.numbers IS 'last emission number, by channel and target partition';


--
-- Name: COLUMN head.decided_at; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.head.decided_at IS 'time of the last segment in microseconds; the handler''s clock never falls below it';


--
-- Name: COLUMN head.hint_offset; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.head.hint_offset IS 'where reading may go on in the log hint_log: a hint, never a truth';


--
-- Name: COLUMN head.claim; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.head.claim IS 'how often a writer has started here: the newest one goes on, older ones are refused';


--
-- Name: instruction; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.instruction (
    producer integer NOT NULL,
    partition integer NOT NULL,
    serial bigint NOT NULL,
    id text NOT NULL,
    value bytea NOT NULL,
    submitted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT instruction_partition_check CHECK ((partition >= 0)),
    CONSTRAINT instruction_serial_check CHECK ((serial > 0))
);


--
-- Name: lane; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.lane (
    channel text NOT NULL,
    partition integer NOT NULL,
    target integer NOT NULL,
    epoch bigint NOT NULL,
    incarnation bigint NOT NULL,
    acknowledged bigint NOT NULL,
    intended bigint NOT NULL
)
WITH (fillfactor='50');


--
-- Name: COLUMN lane.incarnation; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.lane.incarnation IS 'which start of a sender this is; a sender that reads another one has been replaced';


--
-- Name: COLUMN lane.intended; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.lane.intended IS 'receivers that remember nothing: the highest number that may have been sent';


--
-- Name: outbox; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.outbox (
    channel text NOT NULL,
    partition integer NOT NULL,
    target integer NOT NULL,
    first_number bigint NOT NULL,
    count integer NOT NULL,
    messages bytea NOT NULL,
    segment bigint NOT NULL
);


--
-- Name: COLUMN outbox.messages; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.outbox.messages IS 'the messages of one segment: each a length of 4 bytes, little endian, and its bytes';


--
-- Name: COLUMN outbox.segment; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.outbox.segment IS 'the segment of the stage that owes them: with it the chain over emissions can be computed again';


--
-- Name: producer; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.producer (
    producer integer NOT NULL,
    name text NOT NULL,
    topic text NOT NULL,
    consumer text NOT NULL,
    channel text DEFAULT ''::text NOT NULL,
    source_partition integer DEFAULT 0 NOT NULL,
    CONSTRAINT producer_producer_check CHECK ((producer > 0))
);


--
-- Name: TABLE producer; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON TABLE zerotail.producer IS 'what the producer numbers in record headers and segments mean';


--
-- Name: COLUMN producer.consumer; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.producer.consumer IS 'the stage whose vector says how far the records have come';


--
-- Name: COLUMN producer.channel; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.producer.channel IS 'the channel of an upstream stage, when the rows are its outbox';


--
-- Name: COLUMN producer.source_partition; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.producer.source_partition IS 'the partition of that stage: each of them is a producer of its own';


--
-- Name: owed; Type: VIEW; Schema: zerotail; Owner: -
--

CREATE VIEW zerotail.owed AS
 SELECT head.stage,
    said.channel,
    head.partition,
    said.target,
    (reader.taken IS NOT NULL) AS to_topic,
    said.journaled,
    known.acknowledged,
    GREATEST(COALESCE(lane.intended, (0)::bigint), known.acknowledged) AS intended,
    GREATEST((said.journaled - known.acknowledged), (0)::bigint) AS messages,
    waiting.bytes
   FROM (((((zerotail.head
     CROSS JOIN LATERAL ( SELECT (entry.value ->> 0) AS channel,
            ((entry.value ->> 1))::integer AS target,
            ((entry.value ->> 2))::bigint AS journaled
           FROM jsonb_array_elements(head.numbers) entry(value)) said)
     LEFT JOIN zerotail.lane ON (((lane.channel = said.channel) AND (lane.partition = head.partition) AND (lane.target = said.target))))
     LEFT JOIN LATERAL ( SELECT COALESCE(((consumer.vector ->> (producer.producer)::text))::bigint, (0)::bigint) AS taken
           FROM (zerotail.producer
             JOIN zerotail.head consumer ON (((consumer.stage = producer.consumer) AND (consumer.partition = said.target))))
          WHERE ((producer.channel = said.channel) AND (producer.source_partition = head.partition))) reader ON (true))
     CROSS JOIN LATERAL ( SELECT COALESCE(reader.taken, lane.acknowledged, (0)::bigint) AS acknowledged) known)
     CROSS JOIN LATERAL ( SELECT COALESCE(sum(octet_length(outbox.messages)), (0)::bigint) AS bytes
           FROM zerotail.outbox
          WHERE ((outbox.channel = said.channel) AND (outbox.partition = head.partition) AND (outbox.target = said.target) AND ((outbox.first_number + outbox.count) > (known.acknowledged + 1)) AND (outbox.first_number >= COALESCE(( SELECT max(before.first_number) AS max
                   FROM zerotail.outbox before
                  WHERE ((before.channel = said.channel) AND (before.partition = head.partition) AND (before.target = said.target) AND (before.first_number <= (known.acknowledged + 1)))), (0)::bigint)))) waiting);


--
-- Name: VIEW owed; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON VIEW zerotail.owed IS 'per lane: last number given, last number acknowledged, and what lies between them; bytes counts whole outbox rows';


--
-- Name: poison; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.poison (
    stage text NOT NULL,
    partition integer NOT NULL,
    producer integer NOT NULL,
    serial bigint NOT NULL,
    "position" bigint NOT NULL,
    digest bytea NOT NULL,
    reason text NOT NULL,
    found_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempts integer DEFAULT 1 NOT NULL,
    decision text DEFAULT ''::text NOT NULL,
    replacement bytea,
    decided_by text DEFAULT ''::text NOT NULL,
    decided_at timestamp with time zone,
    CONSTRAINT poison_check CHECK (((decision = 'replace'::text) = (replacement IS NOT NULL))),
    CONSTRAINT poison_decision_check CHECK ((decision = ANY (ARRAY[''::text, 'retry'::text, 'skip'::text, 'replace'::text])))
);


--
-- Name: COLUMN poison.digest; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.poison.digest IS 'of the record that was met; a decision does not hold for other bytes';


--
-- Name: COLUMN poison.attempts; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.poison.attempts IS 'how often the partition has stopped at this record';


--
-- Name: process; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.process (
    site text NOT NULL,
    role text NOT NULL,
    name text NOT NULL,
    partition integer DEFAULT '-1'::integer NOT NULL,
    pid integer NOT NULL,
    host text NOT NULL,
    doing text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    counters jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT process_doing_check CHECK ((doing = ANY (ARRAY['working'::text, 'waiting'::text, 'stopped'::text]))),
    CONSTRAINT process_partition_check CHECK ((partition >= '-1'::integer)),
    CONSTRAINT process_role_check CHECK ((role = ANY (ARRAY['producer'::text, 'stage'::text, 'emitter'::text, 'follower'::text, 'watcher'::text])))
)
WITH (fillfactor='50');


--
-- Name: COLUMN process.partition; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.process.partition IS '-1: the process as a whole';


--
-- Name: COLUMN process.reason; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.process.reason IS 'why it waits or has stopped; empty while it works';


--
-- Name: COLUMN process.since; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.process.since IS 'since when it does this for this reason';


--
-- Name: COLUMN process.counters; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.process.counters IS 'sums since the process began, and measures, by name; null is one that nobody knows';


--
-- Name: rejoined; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.rejoined (
    site text NOT NULL,
    epoch bigint NOT NULL
);


--
-- Name: TABLE rejoined; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON TABLE zerotail.rejoined IS 'in which epoch a site came back: its topics carry that number in their names';


--
-- Name: request; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.request (
    producer integer NOT NULL,
    partition integer NOT NULL,
    number bigint NOT NULL,
    serial bigint NOT NULL
);


--
-- Name: TABLE request; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON TABLE zerotail.request IS 'a stage that found a gap asks a producer to send again from this serial on; the number counts the requests';


--
-- Name: segment; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.segment (
    stage text NOT NULL,
    partition integer NOT NULL,
    segment bigint NOT NULL,
    epoch bigint NOT NULL,
    first_position bigint NOT NULL,
    producers integer[] NOT NULL,
    counts integer[] NOT NULL,
    first_serials bigint[] NOT NULL,
    record_order bytea NOT NULL,
    decided_at bigint NOT NULL,
    version text NOT NULL,
    chain bytea NOT NULL,
    output_chain bytea NOT NULL,
    decided bytea
);


--
-- Name: COLUMN segment.counts; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.segment.counts IS 'records taken of each of the producers: in the clear, so that density can be checked by SQL';


--
-- Name: COLUMN segment.record_order; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.segment.record_order IS 'in which order they were taken, packed';


--
-- Name: COLUMN segment.decided; Type: COMMENT; Schema: zerotail; Owner: -
--

COMMENT ON COLUMN zerotail.segment.decided IS 'what operators decided about records of this segment, as JSON; mostly nothing';


--
-- Name: state; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.state (
    stage text NOT NULL,
    partition integer NOT NULL,
    key text NOT NULL,
    value bytea NOT NULL
)
WITH (fillfactor='80');


--
-- Name: step; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.step (
    epoch bigint NOT NULL,
    step integer NOT NULL,
    site text NOT NULL,
    done_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: submission; Type: TABLE; Schema: zerotail; Owner: -
--

CREATE TABLE zerotail.submission (
    producer integer NOT NULL,
    partition integer NOT NULL,
    id text NOT NULL,
    value bytea NOT NULL,
    submitted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT submission_partition_check CHECK ((partition >= 0))
);


--
-- Data for Name: doubt; Type: TABLE DATA; Schema: zerotail; Owner: -
--



--
-- Data for Name: epoch; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.epoch VALUES (256, 'east', 1, 'gated', 'live', '{}', 'start', '', '2026-11-19 17:42:00.759934+00');


--
-- Data for Name: head; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.head VALUES ('settle-before', 0, 256, 3, 30, '{"1": 15, "2": 15, "3": 0}', '[["bank-before", 0, 30]]', '\xd5e558286aa6d4b3d1a2fe1bbd40a5eebf4ebd04bcf1cf09ebdfaea240fb9068', '\xf1a7e1a6280507a1f8344e72224888e6f97f03ba74a5fb047571cd714d8c18c7', 1795110208766593, 'so_GVgF0T0uf0tXz6PPf-A/L3tEhNlrS/WN+PasDFfe4w', 54, 2);
INSERT INTO zerotail.head VALUES ('settle-before', 1, 256, 6, 39, '{"1": 20, "2": 19, "3": 0}', '[["bank-before", 0, 38]]', '\xe8fd7b1afea061008f5177d66fa9d5f3229111725f028bed0c3489e2ca57f2d1', '\xbaef5ed8dc74a54e54a1dd5a011018abf1235b742623f8a4dd818919f1b6a840', 1795110213408956, 'so_GVgF0T0uf0tXz6PPf-A/L3tEhNlrS/WN+PasDFfe4w', 70, 2);


--
-- Data for Name: instruction; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.instruction VALUES (1, 0, 1, '1/0', '\x7b226163636f756e7422203a20226163636f756e742031222c2022616d6f756e7422203a20317d', '2026-11-19 17:42:24.500037+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 2, '2/0', '\x7b226163636f756e7422203a20226163636f756e742032222c2022616d6f756e7422203a20327d', '2026-11-19 17:42:24.500409+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 3, '3/0', '\x7b226163636f756e7422203a20226163636f756e742033222c2022616d6f756e7422203a20337d', '2026-11-19 17:42:24.500413+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 4, '4/0', '\x7b226163636f756e7422203a20226163636f756e742034222c2022616d6f756e7422203a20347d', '2026-11-19 17:42:24.500415+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 5, '5/0', '\x7b226163636f756e7422203a20226163636f756e742035222c2022616d6f756e7422203a20357d', '2026-11-19 17:42:24.500417+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 6, '6/0', '\x7b226163636f756e7422203a20226163636f756e742036222c2022616d6f756e7422203a20367d', '2026-11-19 17:42:24.500419+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 7, '7/0', '\x7b226163636f756e7422203a20226163636f756e742037222c2022616d6f756e7422203a20377d', '2026-11-19 17:42:24.50042+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 8, '8/0', '\x7b226163636f756e7422203a20226163636f756e742038222c2022616d6f756e7422203a20387d', '2026-11-19 17:42:24.500422+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 9, '9/0', '\x7b226163636f756e7422203a20226163636f756e742039222c2022616d6f756e7422203a20397d', '2026-11-19 17:42:24.500424+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 10, '10/0', '\x7b226163636f756e7422203a20226163636f756e74203130222c2022616d6f756e7422203a2031307d', '2026-11-19 17:42:24.500425+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 11, '11/0', '\x7b226163636f756e7422203a20226163636f756e74203131222c2022616d6f756e7422203a2031317d', '2026-11-19 17:42:24.500427+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 12, '12/0', '\x7b226163636f756e7422203a20226163636f756e74203132222c2022616d6f756e7422203a2031327d', '2026-11-19 17:42:24.500429+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 1, '1/1', '\x7b226163636f756e7422203a20226163636f756e742031222c2022616d6f756e7422203a20317d', '2026-11-19 17:42:24.529633+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 2, '2/1', '\x7b226163636f756e7422203a20226163636f756e742032222c2022616d6f756e7422203a20327d', '2026-11-19 17:42:24.52966+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 3, '3/1', '\x7b226163636f756e7422203a20226163636f756e742033222c2022616d6f756e7422203a20337d', '2026-11-19 17:42:24.529663+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 4, '4/1', '\x7b226163636f756e7422203a20226163636f756e742034222c2022616d6f756e7422203a20347d', '2026-11-19 17:42:24.529665+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 5, '5/1', '\x7b226163636f756e7422203a20226163636f756e742035222c2022616d6f756e7422203a20357d', '2026-11-19 17:42:24.529667+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 6, '6/1', '\x7b226163636f756e7422203a20226163636f756e742036222c2022616d6f756e7422203a20367d', '2026-11-19 17:42:24.529669+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 7, '7/1', '\x7b226163636f756e7422203a20226163636f756e742037222c2022616d6f756e7422203a20377d', '2026-11-19 17:42:24.529671+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 8, '8/1', '\x7b226163636f756e7422203a20226163636f756e742038222c2022616d6f756e7422203a20387d', '2026-11-19 17:42:24.529672+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 9, '9/1', '\x7b226163636f756e7422203a20226163636f756e742039222c2022616d6f756e7422203a20397d', '2026-11-19 17:42:24.529674+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 10, '10/1', '\x7b226163636f756e7422203a20226163636f756e74203130222c2022616d6f756e7422203a2031307d', '2026-11-19 17:42:24.529676+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 11, '11/1', '\x7b226163636f756e7422203a20226163636f756e74203131222c2022616d6f756e7422203a2031317d', '2026-11-19 17:42:24.529677+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 12, '12/1', '\x7b226163636f756e7422203a20226163636f756e74203132222c2022616d6f756e7422203a2031327d', '2026-11-19 17:42:24.529679+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 1, '1/0', '\x7b226163636f756e7422203a20226163636f756e742031222c2022616d6f756e7422203a20317d', '2026-11-19 17:42:24.548196+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 2, '2/0', '\x7b226163636f756e7422203a20226163636f756e742032222c2022616d6f756e7422203a20327d', '2026-11-19 17:42:24.548226+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 3, '3/0', '\x7b226163636f756e7422203a20226163636f756e742033222c2022616d6f756e7422203a20337d', '2026-11-19 17:42:24.548229+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 4, '4/0', '\x7b226163636f756e7422203a20226163636f756e742034222c2022616d6f756e7422203a20347d', '2026-11-19 17:42:24.548232+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 5, '5/0', '\x7b226163636f756e7422203a20226163636f756e742035222c2022616d6f756e7422203a20357d', '2026-11-19 17:42:24.548234+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 6, '6/0', '\x7b226163636f756e7422203a20226163636f756e742036222c2022616d6f756e7422203a20367d', '2026-11-19 17:42:24.548236+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 7, '7/0', '\x7b226163636f756e7422203a20226163636f756e742037222c2022616d6f756e7422203a20377d', '2026-11-19 17:42:24.548237+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 8, '8/0', '\x7b226163636f756e7422203a20226163636f756e742038222c2022616d6f756e7422203a20387d', '2026-11-19 17:42:24.548239+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 9, '9/0', '\x7b226163636f756e7422203a20226163636f756e742039222c2022616d6f756e7422203a20397d', '2026-11-19 17:42:24.54824+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 10, '10/0', '\x7b226163636f756e7422203a20226163636f756e74203130222c2022616d6f756e7422203a2031307d', '2026-11-19 17:42:24.548242+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 11, '11/0', '\x7b226163636f756e7422203a20226163636f756e74203131222c2022616d6f756e7422203a2031317d', '2026-11-19 17:42:24.548244+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 12, '12/0', '\x7b226163636f756e7422203a20226163636f756e74203132222c2022616d6f756e7422203a2031327d', '2026-11-19 17:42:24.548246+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 1, '1/1', '\x7b226163636f756e7422203a20226163636f756e742031222c2022616d6f756e7422203a20317d', '2026-11-19 17:42:24.560712+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 2, '2/1', '\x7b226163636f756e7422203a20226163636f756e742032222c2022616d6f756e7422203a20327d', '2026-11-19 17:42:24.56074+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 3, '3/1', '\x7b226163636f756e7422203a20226163636f756e742033222c2022616d6f756e7422203a20337d', '2026-11-19 17:42:24.560744+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 4, '4/1', '\x7b226163636f756e7422203a20226163636f756e742034222c2022616d6f756e7422203a20347d', '2026-11-19 17:42:24.560746+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 5, '5/1', '\x7b226163636f756e7422203a20226163636f756e742035222c2022616d6f756e7422203a20357d', '2026-11-19 17:42:24.560748+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 6, '6/1', '\x7b226163636f756e7422203a20226163636f756e742036222c2022616d6f756e7422203a20367d', '2026-11-19 17:42:24.56075+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 7, '7/1', '\x7b226163636f756e7422203a20226163636f756e742037222c2022616d6f756e7422203a20377d', '2026-11-19 17:42:24.560752+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 8, '8/1', '\x7b226163636f756e7422203a20226163636f756e742038222c2022616d6f756e7422203a20387d', '2026-11-19 17:42:24.560754+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 9, '9/1', '\x7b226163636f756e7422203a20226163636f756e742039222c2022616d6f756e7422203a20397d', '2026-11-19 17:42:24.560756+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 10, '10/1', '\x7b226163636f756e7422203a20226163636f756e74203130222c2022616d6f756e7422203a2031307d', '2026-11-19 17:42:24.560758+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 11, '11/1', '\x7b226163636f756e7422203a20226163636f756e74203131222c2022616d6f756e7422203a2031317d', '2026-11-19 17:42:24.56076+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 12, '12/1', '\x7b226163636f756e7422203a20226163636f756e74203132222c2022616d6f756e7422203a2031327d', '2026-11-19 17:42:24.560762+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 13, '13/1', '\x7b226163636f756e74223a20226163636f756e742031222c2022616d6f756e74223a20352c2022706f69736f6e223a20747275657d', '2026-11-19 17:43:20.611117+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 13, '13/0', '\x7b226163636f756e7422203a20226163636f756e74203133222c2022616d6f756e7422203a2031337d', '2026-11-19 17:43:26.213791+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 14, '14/0', '\x7b226163636f756e7422203a20226163636f756e74203134222c2022616d6f756e7422203a2031347d', '2026-11-19 17:43:26.213911+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 15, '15/0', '\x7b226163636f756e7422203a20226163636f756e74203135222c2022616d6f756e7422203a2031357d', '2026-11-19 17:43:26.213914+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 14, '14/1', '\x7b226163636f756e7422203a20226163636f756e74203134222c2022616d6f756e7422203a2031347d', '2026-11-19 17:43:26.223194+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 15, '15/1', '\x7b226163636f756e7422203a20226163636f756e74203135222c2022616d6f756e7422203a2031357d', '2026-11-19 17:43:26.223225+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 16, '16/1', '\x7b226163636f756e7422203a20226163636f756e74203136222c2022616d6f756e7422203a2031367d', '2026-11-19 17:43:26.223244+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 13, '13/0', '\x7b226163636f756e7422203a20226163636f756e74203133222c2022616d6f756e7422203a2031337d', '2026-11-19 17:43:26.236986+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 14, '14/0', '\x7b226163636f756e7422203a20226163636f756e74203134222c2022616d6f756e7422203a2031347d', '2026-11-19 17:43:26.237021+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 15, '15/0', '\x7b226163636f756e7422203a20226163636f756e74203135222c2022616d6f756e7422203a2031357d', '2026-11-19 17:43:26.237024+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 13, '13/1', '\x7b226163636f756e7422203a20226163636f756e74203133222c2022616d6f756e7422203a2031337d', '2026-11-19 17:43:26.250923+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 14, '14/1', '\x7b226163636f756e7422203a20226163636f756e74203134222c2022616d6f756e7422203a2031347d', '2026-11-19 17:43:26.250959+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 15, '15/1', '\x7b226163636f756e7422203a20226163636f756e74203135222c2022616d6f756e7422203a2031357d', '2026-11-19 17:43:26.250963+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 16, '16/0', '\x7b226163636f756e74223a20226163636f756e742031222c2022616d6f756e74223a20352c2022706f69736f6e223a20747275657d', '2026-11-19 17:43:29.225065+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 17, '17/0', '\x7b226163636f756e7422203a20226163636f756e74203137222c2022616d6f756e7422203a2031377d', '2026-11-19 17:43:31.655746+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 18, '18/0', '\x7b226163636f756e7422203a20226163636f756e74203138222c2022616d6f756e7422203a2031387d', '2026-11-19 17:43:31.655833+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 19, '19/0', '\x7b226163636f756e7422203a20226163636f756e74203139222c2022616d6f756e7422203a2031397d', '2026-11-19 17:43:31.655838+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 20, '20/0', '\x7b226163636f756e7422203a20226163636f756e74203230222c2022616d6f756e7422203a2032307d', '2026-11-19 17:43:31.65584+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 17, '17/1', '\x7b226163636f756e7422203a20226163636f756e74203137222c2022616d6f756e7422203a2031377d', '2026-11-19 17:43:31.664234+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 18, '18/1', '\x7b226163636f756e7422203a20226163636f756e74203138222c2022616d6f756e7422203a2031387d', '2026-11-19 17:43:31.664255+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 19, '19/1', '\x7b226163636f756e7422203a20226163636f756e74203139222c2022616d6f756e7422203a2031397d', '2026-11-19 17:43:31.664258+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 20, '20/1', '\x7b226163636f756e7422203a20226163636f756e74203230222c2022616d6f756e7422203a2032307d', '2026-11-19 17:43:31.66426+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 16, '16/0', '\x7b226163636f756e7422203a20226163636f756e74203136222c2022616d6f756e7422203a2031367d', '2026-11-19 17:43:31.667679+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 17, '17/0', '\x7b226163636f756e7422203a20226163636f756e74203137222c2022616d6f756e7422203a2031377d', '2026-11-19 17:43:31.6677+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 18, '18/0', '\x7b226163636f756e7422203a20226163636f756e74203138222c2022616d6f756e7422203a2031387d', '2026-11-19 17:43:31.667703+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 19, '19/0', '\x7b226163636f756e7422203a20226163636f756e74203139222c2022616d6f756e7422203a2031397d', '2026-11-19 17:43:31.667705+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 16, '16/1', '\x7b226163636f756e7422203a20226163636f756e74203136222c2022616d6f756e7422203a2031367d', '2026-11-19 17:43:31.671796+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 17, '17/1', '\x7b226163636f756e7422203a20226163636f756e74203137222c2022616d6f756e7422203a2031377d', '2026-11-19 17:43:31.671812+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 18, '18/1', '\x7b226163636f756e7422203a20226163636f756e74203138222c2022616d6f756e7422203a2031387d', '2026-11-19 17:43:31.671816+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 19, '19/1', '\x7b226163636f756e7422203a20226163636f756e74203139222c2022616d6f756e7422203a2031397d', '2026-11-19 17:43:31.671818+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 21, '21/0', '\x7b226163636f756e7422203a20226163636f756e74203231222c2022616d6f756e7422203a2032317d', '2026-11-19 17:43:43.144208+00');
INSERT INTO zerotail.instruction VALUES (1, 0, 22, '22/0', '\x7b226163636f756e7422203a20226163636f756e74203232222c2022616d6f756e7422203a2032327d', '2026-11-19 17:43:43.144292+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 21, '21/1', '\x7b226163636f756e7422203a20226163636f756e74203231222c2022616d6f756e7422203a2032317d', '2026-11-19 17:43:43.150133+00');
INSERT INTO zerotail.instruction VALUES (1, 1, 22, '22/1', '\x7b226163636f756e7422203a20226163636f756e74203232222c2022616d6f756e7422203a2032327d', '2026-11-19 17:43:43.150213+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 20, '20/0', '\x7b226163636f756e7422203a20226163636f756e74203230222c2022616d6f756e7422203a2032307d', '2026-11-19 17:43:43.151394+00');
INSERT INTO zerotail.instruction VALUES (2, 0, 21, '21/0', '\x7b226163636f756e7422203a20226163636f756e74203231222c2022616d6f756e7422203a2032317d', '2026-11-19 17:43:43.151416+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 20, '20/1', '\x7b226163636f756e7422203a20226163636f756e74203230222c2022616d6f756e7422203a2032307d', '2026-11-19 17:43:43.152366+00');
INSERT INTO zerotail.instruction VALUES (2, 1, 21, '21/1', '\x7b226163636f756e7422203a20226163636f756e74203231222c2022616d6f756e7422203a2032317d', '2026-11-19 17:43:43.152381+00');


--
-- Data for Name: lane; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.lane VALUES ('bank-before', 0, 0, 256, 1, 30, 30);
INSERT INTO zerotail.lane VALUES ('bank-before', 1, 0, 256, 1, 38, 38);


--
-- Data for Name: outbox; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.outbox VALUES ('bank-before', 0, 0, 1, 12, '\x230000007b226163636f756e74223a226163636f756e742031222c2262616c616e6365223a317d230000007b226163636f756e74223a226163636f756e742032222c2262616c616e6365223a327d230000007b226163636f756e74223a226163636f756e742033222c2262616c616e6365223a337d230000007b226163636f756e74223a226163636f756e742034222c2262616c616e6365223a347d230000007b226163636f756e74223a226163636f756e742035222c2262616c616e6365223a357d230000007b226163636f756e74223a226163636f756e742036222c2262616c616e6365223a367d230000007b226163636f756e74223a226163636f756e742037222c2262616c616e6365223a377d230000007b226163636f756e74223a226163636f756e742038222c2262616c616e6365223a387d230000007b226163636f756e74223a226163636f756e742039222c2262616c616e6365223a397d250000007b226163636f756e74223a226163636f756e74203130222c2262616c616e6365223a31307d250000007b226163636f756e74223a226163636f756e74203131222c2262616c616e6365223a31317d250000007b226163636f756e74223a226163636f756e74203132222c2262616c616e6365223a31327d', 1);
INSERT INTO zerotail.outbox VALUES ('bank-before', 1, 0, 1, 12, '\x230000007b226163636f756e74223a226163636f756e742031222c2262616c616e6365223a317d230000007b226163636f756e74223a226163636f756e742032222c2262616c616e6365223a327d230000007b226163636f756e74223a226163636f756e742033222c2262616c616e6365223a337d230000007b226163636f756e74223a226163636f756e742034222c2262616c616e6365223a347d230000007b226163636f756e74223a226163636f756e742035222c2262616c616e6365223a357d230000007b226163636f756e74223a226163636f756e742036222c2262616c616e6365223a367d230000007b226163636f756e74223a226163636f756e742037222c2262616c616e6365223a377d230000007b226163636f756e74223a226163636f756e742038222c2262616c616e6365223a387d230000007b226163636f756e74223a226163636f756e742039222c2262616c616e6365223a397d250000007b226163636f756e74223a226163636f756e74203130222c2262616c616e6365223a31307d250000007b226163636f756e74223a226163636f756e74203131222c2262616c616e6365223a31317d250000007b226163636f756e74223a226163636f756e74203132222c2262616c616e6365223a31327d', 1);
INSERT INTO zerotail.outbox VALUES ('bank-before', 0, 0, 13, 12, '\x230000007b226163636f756e74223a226163636f756e742031222c2262616c616e6365223a327d230000007b226163636f756e74223a226163636f756e742032222c2262616c616e6365223a347d230000007b226163636f756e74223a226163636f756e742033222c2262616c616e6365223a367d230000007b226163636f756e74223a226163636f756e742034222c2262616c616e6365223a387d240000007b226163636f756e74223a226163636f756e742035222c2262616c616e6365223a31307d240000007b226163636f756e74223a226163636f756e742036222c2262616c616e6365223a31327d240000007b226163636f756e74223a226163636f756e742037222c2262616c616e6365223a31347d240000007b226163636f756e74223a226163636f756e742038222c2262616c616e6365223a31367d240000007b226163636f756e74223a226163636f756e742039222c2262616c616e6365223a31387d250000007b226163636f756e74223a226163636f756e74203130222c2262616c616e6365223a32307d250000007b226163636f756e74223a226163636f756e74203131222c2262616c616e6365223a32327d250000007b226163636f756e74223a226163636f756e74203132222c2262616c616e6365223a32347d', 2);
INSERT INTO zerotail.outbox VALUES ('bank-before', 1, 0, 13, 12, '\x230000007b226163636f756e74223a226163636f756e742031222c2262616c616e6365223a327d230000007b226163636f756e74223a226163636f756e742032222c2262616c616e6365223a347d230000007b226163636f756e74223a226163636f756e742033222c2262616c616e6365223a367d230000007b226163636f756e74223a226163636f756e742034222c2262616c616e6365223a387d240000007b226163636f756e74223a226163636f756e742035222c2262616c616e6365223a31307d240000007b226163636f756e74223a226163636f756e742036222c2262616c616e6365223a31327d240000007b226163636f756e74223a226163636f756e742037222c2262616c616e6365223a31347d240000007b226163636f756e74223a226163636f756e742038222c2262616c616e6365223a31367d240000007b226163636f756e74223a226163636f756e742039222c2262616c616e6365223a31387d250000007b226163636f756e74223a226163636f756e74203130222c2262616c616e6365223a32307d250000007b226163636f756e74223a226163636f756e74203131222c2262616c616e6365223a32327d250000007b226163636f756e74223a226163636f756e74203132222c2262616c616e6365223a32347d', 2);
INSERT INTO zerotail.outbox VALUES ('bank-before', 1, 0, 25, 3, '\x250000007b226163636f756e74223a226163636f756e74203134222c2262616c616e6365223a31347d250000007b226163636f756e74223a226163636f756e74203135222c2262616c616e6365223a31357d250000007b226163636f756e74223a226163636f756e74203136222c2262616c616e6365223a31367d', 3);
INSERT INTO zerotail.outbox VALUES ('bank-before', 1, 0, 28, 3, '\x250000007b226163636f756e74223a226163636f756e74203133222c2262616c616e6365223a31337d250000007b226163636f756e74223a226163636f756e74203134222c2262616c616e6365223a32387d250000007b226163636f756e74223a226163636f756e74203135222c2262616c616e6365223a33307d', 4);
INSERT INTO zerotail.outbox VALUES ('bank-before', 0, 0, 25, 6, '\x250000007b226163636f756e74223a226163636f756e74203133222c2262616c616e6365223a31337d250000007b226163636f756e74223a226163636f756e74203134222c2262616c616e6365223a31347d250000007b226163636f756e74223a226163636f756e74203135222c2262616c616e6365223a31357d250000007b226163636f756e74223a226163636f756e74203133222c2262616c616e6365223a32367d250000007b226163636f756e74223a226163636f756e74203134222c2262616c616e6365223a32387d250000007b226163636f756e74223a226163636f756e74203135222c2262616c616e6365223a33307d', 3);
INSERT INTO zerotail.outbox VALUES ('bank-before', 1, 0, 31, 4, '\x250000007b226163636f756e74223a226163636f756e74203137222c2262616c616e6365223a31377d250000007b226163636f756e74223a226163636f756e74203138222c2262616c616e6365223a31387d250000007b226163636f756e74223a226163636f756e74203139222c2262616c616e6365223a31397d250000007b226163636f756e74223a226163636f756e74203230222c2262616c616e6365223a32307d', 5);
INSERT INTO zerotail.outbox VALUES ('bank-before', 1, 0, 35, 4, '\x250000007b226163636f756e74223a226163636f756e74203136222c2262616c616e6365223a33327d250000007b226163636f756e74223a226163636f756e74203137222c2262616c616e6365223a33347d250000007b226163636f756e74223a226163636f756e74203138222c2262616c616e6365223a33367d250000007b226163636f756e74223a226163636f756e74203139222c2262616c616e6365223a33387d', 6);


--
-- Data for Name: poison; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.poison VALUES ('settle-before', 1, 1, 13, 24, '\x1dce8629e0c3c3d3', 'ValueError: cannot settle this at flows_before.py:17', '2026-11-19 17:43:21.633786+00', 1, 'skip', NULL, 'anna', '2026-11-19 17:43:25.126774+00');
INSERT INTO zerotail.poison VALUES ('settle-before', 0, 1, 16, 30, '\x1dce8629e0c3c3d3', 'ValueError: cannot settle this at flows_before.py:17', '2026-11-19 17:43:31.544846+00', 1, '', NULL, '', NULL);


--
-- Data for Name: process; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.process VALUES ('east', 'producer', 'wires-before', 1, 14153, 'host-1', 'working', '', '2026-11-19 17:43:19.644911+00', '2026-11-19 17:43:40.321419+00', '{"sent": 34}');
INSERT INTO zerotail.process VALUES ('east', 'emitter', 'bank-before', 1, 14165, 'host-1', 'waiting', 'nothing is owed', '2026-11-19 17:43:29.14935+00', '2026-11-19 17:43:37.724201+00', '{}');
INSERT INTO zerotail.process VALUES ('east', 'emitter', 'bank-before', 0, 14165, 'host-1', 'waiting', 'nothing is owed', '2026-11-19 17:42:25.840166+00', '2026-11-19 17:43:37.724283+00', '{}');
INSERT INTO zerotail.process VALUES ('east', 'stage', 'settle-before', 0, 14153, 'host-1', 'stopped', 'serial 16 of producer 1 at position 30: ValueError: cannot settle this at flows_before.py:17', '2026-11-19 17:43:31.582366+00', '2026-11-19 17:43:40.321314+00', '{"held": 0, "applied": 30, "foreign": 0, "orphans": 0, "repeats": 42}');
INSERT INTO zerotail.process VALUES ('east', 'stage', 'settle-before', 1, 14153, 'host-1', 'working', '', '2026-11-19 17:43:26.124443+00', '2026-11-19 17:43:40.321398+00', '{"held": 0, "applied": 39, "foreign": 0, "orphans": 0, "repeats": 43}');
INSERT INTO zerotail.process VALUES ('east', 'producer', 'cards-before', -1, 14153, 'host-1', 'working', '', '2026-11-19 17:43:04.30303+00', '2026-11-19 17:43:40.321403+00', '{}');
INSERT INTO zerotail.process VALUES ('east', 'producer', 'wires-before', -1, 14153, 'host-1', 'working', '', '2026-11-19 17:43:04.303094+00', '2026-11-19 17:43:40.321406+00', '{}');
INSERT INTO zerotail.process VALUES ('east', 'producer', 'notes-before', -1, 14153, 'host-1', 'working', '', '2026-11-19 17:43:04.303099+00', '2026-11-19 17:43:40.321409+00', '{}');
INSERT INTO zerotail.process VALUES ('east', 'producer', 'cards-before', 0, 14153, 'host-1', 'working', '', '2026-11-19 17:43:19.644806+00', '2026-11-19 17:43:40.321412+00', '{"sent": 35}');
INSERT INTO zerotail.process VALUES ('east', 'producer', 'cards-before', 1, 14153, 'host-1', 'working', '', '2026-11-19 17:43:19.64489+00', '2026-11-19 17:43:40.321414+00', '{"sent": 36}');
INSERT INTO zerotail.process VALUES ('east', 'producer', 'wires-before', 0, 14153, 'host-1', 'working', '', '2026-11-19 17:43:19.644903+00', '2026-11-19 17:43:40.321417+00', '{"sent": 34}');


--
-- Data for Name: producer; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.producer VALUES (1, 'cards-before', 'payments-before', 'settle-before', '', 0);
INSERT INTO zerotail.producer VALUES (2, 'wires-before', 'payments-before', 'settle-before', '', 0);
INSERT INTO zerotail.producer VALUES (3, 'notes-before', 'payments-before', 'settle-before', '', 0);


--
-- Data for Name: rejoined; Type: TABLE DATA; Schema: zerotail; Owner: -
--



--
-- Data for Name: request; Type: TABLE DATA; Schema: zerotail; Owner: -
--



--
-- Data for Name: segment; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.segment VALUES ('settle-before', 0, 1, 256, 0, '{1}', '{12}', '{1}', '\x00', 1795110198207563, '1', '\x4431ae2d6594606b3a949929ae8c0559ffbffc13ae5bd2d8d5259e675f8fb69b', '\x70839099068d0762fc18a3bf931ed91f049eb7f1d27bf23d6fb14cf5194375b8', NULL);
INSERT INTO zerotail.segment VALUES ('settle-before', 1, 1, 256, 0, '{1}', '{12}', '{1}', '\x00', 1795110198207563, '1', '\x4431ae2d6594606b3a949929ae8c0559ffbffc13ae5bd2d8d5259e675f8fb69b', '\x70839099068d0762fc18a3bf931ed91f049eb7f1d27bf23d6fb14cf5194375b8', NULL);
INSERT INTO zerotail.segment VALUES ('settle-before', 0, 2, 256, 12, '{2}', '{12}', '{1}', '\x00', 1795110200113434, '1', '\x27c277f1f042b9b609050b423edc27f7ceca00e455cc9834de995a60822742de', '\xbc51a3ed9e5ac053dbe7c5aa682883de88a1e92dd5e0ef7904e76f6d317af4a2', NULL);
INSERT INTO zerotail.segment VALUES ('settle-before', 1, 2, 256, 12, '{2}', '{12}', '{1}', '\x00', 1795110200113434, '1', '\x27c277f1f042b9b609050b423edc27f7ceca00e455cc9834de995a60822742de', '\xbc51a3ed9e5ac053dbe7c5aa682883de88a1e92dd5e0ef7904e76f6d317af4a2', NULL);
INSERT INTO zerotail.segment VALUES ('settle-before', 1, 3, 256, 24, '{1}', '{4}', '{13}', '\x00', 1795110207348362, '1', '\x7c40e33bf428da711568a1f9bf903d6bb50d89f54eb12c0540034facdab38ee8', '\x0c5ffc51e05806cf5b624f3a36d16f682d48bbc80ddd33e73f8480af1814463b', '\x5b5b302c22736b6970222c22486336474b65444477394d3d222c22225d5d');
INSERT INTO zerotail.segment VALUES ('settle-before', 1, 4, 256, 28, '{2}', '{3}', '{13}', '\x00', 1795110208766593, '1', '\x5fc4e4a3445f69c305be02db7197ba6482d1999522c0eceb108a370deec0c271', '\x8c2d031e5c05e60108b56ac1abd32b02020f7f22957acdab848feef4bc975298', NULL);
INSERT INTO zerotail.segment VALUES ('settle-before', 0, 3, 256, 24, '{1,2}', '{3,3}', '{13,13}', '\x0038', 1795110208766593, '1', '\xd5e558286aa6d4b3d1a2fe1bbd40a5eebf4ebd04bcf1cf09ebdfaea240fb9068', '\xf1a7e1a6280507a1f8344e72224888e6f97f03ba74a5fb047571cd714d8c18c7', NULL);
INSERT INTO zerotail.segment VALUES ('settle-before', 1, 5, 256, 31, '{1}', '{4}', '{17}', '\x00', 1795110212896321, '1', '\xa4450b96a4858b5ddc65ee01e93cc81890a4ce4393d3c98ce3ceb8bd88945708', '\x95655d67b9aa2882b1696b6dcff5059b647dfd361e00bf394d0ff77d68da4c20', NULL);
INSERT INTO zerotail.segment VALUES ('settle-before', 1, 6, 256, 35, '{2}', '{4}', '{16}', '\x00', 1795110213408956, '1', '\xe8fd7b1afea061008f5177d66fa9d5f3229111725f028bed0c3489e2ca57f2d1', '\xbaef5ed8dc74a54e54a1dd5a011018abf1235b742623f8a4dd818919f1b6a840', NULL);


--
-- Data for Name: state; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 1', '\x32');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 10', '\x3230');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 11', '\x3232');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 12', '\x3234');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 2', '\x34');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 3', '\x36');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 4', '\x38');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 5', '\x3130');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 6', '\x3132');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 7', '\x3134');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 8', '\x3136');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 9', '\x3138');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 1', '\x32');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 10', '\x3230');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 11', '\x3232');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 12', '\x3234');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 2', '\x34');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 3', '\x36');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 4', '\x38');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 5', '\x3130');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 6', '\x3132');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 7', '\x3134');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 8', '\x3136');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 9', '\x3138');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 14', '\x3238');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 15', '\x3330');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 13', '\x3133');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 13', '\x3236');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 14', '\x3238');
INSERT INTO zerotail.state VALUES ('settle-before', 0, 'account 15', '\x3330');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 20', '\x3230');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 16', '\x3332');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 17', '\x3334');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 18', '\x3336');
INSERT INTO zerotail.state VALUES ('settle-before', 1, 'account 19', '\x3338');


--
-- Data for Name: step; Type: TABLE DATA; Schema: zerotail; Owner: -
--



--
-- Data for Name: submission; Type: TABLE DATA; Schema: zerotail; Owner: -
--

INSERT INTO zerotail.submission VALUES (3, 0, 'note 0', '\x7b226163636f756e74223a20226163636f756e742030222c2022616d6f756e74223a20307d', '2026-11-19 17:43:43.087455+00');
INSERT INTO zerotail.submission VALUES (3, 1, 'note 1', '\x7b226163636f756e74223a20226163636f756e742031222c2022616d6f756e74223a20317d', '2026-11-19 17:43:43.10651+00');
INSERT INTO zerotail.submission VALUES (3, 0, 'note 2', '\x7b226163636f756e74223a20226163636f756e742032222c2022616d6f756e74223a20327d', '2026-11-19 17:43:43.113736+00');
INSERT INTO zerotail.submission VALUES (3, 1, 'note 3', '\x7b226163636f756e74223a20226163636f756e742033222c2022616d6f756e74223a20337d', '2026-11-19 17:43:43.117565+00');
INSERT INTO zerotail.submission VALUES (3, 0, 'note 4', '\x7b226163636f756e74223a20226163636f756e742034222c2022616d6f756e74223a20347d', '2026-11-19 17:43:43.12485+00');
INSERT INTO zerotail.submission VALUES (3, 1, 'note 5', '\x7b226163636f756e74223a20226163636f756e742035222c2022616d6f756e74223a20357d', '2026-11-19 17:43:43.125956+00');
INSERT INTO zerotail.submission VALUES (3, 0, 'note 6', '\x7b226163636f756e74223a20226163636f756e742036222c2022616d6f756e74223a20367d', '2026-11-19 17:43:43.13089+00');


--
-- Name: doubt doubt_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.doubt
    ADD CONSTRAINT doubt_pkey PRIMARY KEY (channel, partition, target, number, incarnation);


--
-- Name: epoch epoch_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.epoch
    ADD CONSTRAINT epoch_pkey PRIMARY KEY (epoch);


--
-- Name: head head_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.head
    ADD CONSTRAINT head_pkey PRIMARY KEY (stage, partition);


--
-- Name: instruction instruction_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.instruction
    ADD CONSTRAINT instruction_pkey PRIMARY KEY (producer, partition, serial);


--
-- Name: instruction instruction_producer_id_key; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.instruction
    ADD CONSTRAINT instruction_producer_id_key UNIQUE (producer, id);


--
-- Name: lane lane_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (channel, partition, target);


--
-- Name: outbox outbox_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (channel, partition, target, first_number);


--
-- Name: poison poison_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.poison
    ADD CONSTRAINT poison_pkey PRIMARY KEY (stage, partition, producer, serial);


--
-- Name: process process_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.process
    ADD CONSTRAINT process_pkey PRIMARY KEY (site, role, name, partition);


--
-- Name: producer producer_name_key; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.producer
    ADD CONSTRAINT producer_name_key UNIQUE (name);


--
-- Name: producer producer_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.producer
    ADD CONSTRAINT producer_pkey PRIMARY KEY (producer);


--
-- Name: rejoined rejoined_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.rejoined
    ADD CONSTRAINT rejoined_pkey PRIMARY KEY (site);


--
-- Name: request request_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (producer, partition);


--
-- Name: segment segment_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.segment
    ADD CONSTRAINT segment_pkey PRIMARY KEY (stage, partition, segment);


--
-- Name: state state_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.state
    ADD CONSTRAINT state_pkey PRIMARY KEY (stage, partition, key);


--
-- Name: step step_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.step
    ADD CONSTRAINT step_pkey PRIMARY KEY (epoch, step);


--
-- Name: submission submission_pkey; Type: CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.submission
    ADD CONSTRAINT submission_pkey PRIMARY KEY (producer, id);


--
-- Name: submission_turn; Type: INDEX; Schema: zerotail; Owner: -
--

CREATE INDEX submission_turn ON zerotail.submission USING btree (producer, partition, submitted_at, id);


--
-- Name: instruction instruction_goes_by_truncation; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER instruction_goes_by_truncation BEFORE DELETE ON zerotail.instruction FOR EACH ROW EXECUTE FUNCTION zerotail.goes_by_truncation();


--
-- Name: instruction instruction_is_not_emptied; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER instruction_is_not_emptied BEFORE TRUNCATE ON zerotail.instruction FOR EACH STATEMENT EXECUTE FUNCTION zerotail.goes_by_truncation();


--
-- Name: instruction instruction_needs_own_timeline; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER instruction_needs_own_timeline BEFORE INSERT ON zerotail.instruction FOR EACH STATEMENT EXECUTE FUNCTION zerotail.needs_own_timeline();


--
-- Name: instruction instruction_never_changes; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER instruction_never_changes BEFORE UPDATE ON zerotail.instruction FOR EACH ROW EXECUTE FUNCTION zerotail.never_changes();


--
-- Name: outbox outbox_goes_by_truncation; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER outbox_goes_by_truncation BEFORE DELETE ON zerotail.outbox FOR EACH ROW EXECUTE FUNCTION zerotail.goes_by_truncation();


--
-- Name: outbox outbox_is_not_emptied; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER outbox_is_not_emptied BEFORE TRUNCATE ON zerotail.outbox FOR EACH STATEMENT EXECUTE FUNCTION zerotail.goes_by_truncation();


--
-- Name: outbox outbox_never_changes; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER outbox_never_changes BEFORE UPDATE ON zerotail.outbox FOR EACH ROW EXECUTE FUNCTION zerotail.never_changes();


--
-- Name: segment segment_goes_by_truncation; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER segment_goes_by_truncation BEFORE DELETE ON zerotail.segment FOR EACH ROW EXECUTE FUNCTION zerotail.goes_by_truncation();


--
-- Name: segment segment_is_not_emptied; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER segment_is_not_emptied BEFORE TRUNCATE ON zerotail.segment FOR EACH STATEMENT EXECUTE FUNCTION zerotail.goes_by_truncation();


--
-- Name: segment segment_never_changes; Type: TRIGGER; Schema: zerotail; Owner: -
--

CREATE TRIGGER segment_never_changes BEFORE UPDATE ON zerotail.segment FOR EACH ROW EXECUTE FUNCTION zerotail.never_changes();


--
-- Name: head head_epoch_fkey; Type: FK CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.head
    ADD CONSTRAINT head_epoch_fkey FOREIGN KEY (epoch) REFERENCES zerotail.epoch(epoch);


--
-- Name: instruction instruction_producer_fkey; Type: FK CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.instruction
    ADD CONSTRAINT instruction_producer_fkey FOREIGN KEY (producer) REFERENCES zerotail.producer(producer);


--
-- Name: submission submission_producer_fkey; Type: FK CONSTRAINT; Schema: zerotail; Owner: -
--

ALTER TABLE ONLY zerotail.submission
    ADD CONSTRAINT submission_producer_fkey FOREIGN KEY (producer) REFERENCES zerotail.producer(producer);


--
-- Name: SCHEMA zerotail; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA zerotail TO zerotail_writer;
GRANT USAGE ON SCHEMA zerotail TO zerotail_reader;
GRANT USAGE ON SCHEMA zerotail TO zerotail_operator;
GRANT USAGE ON SCHEMA zerotail TO zerotail_truncator;


--
-- Name: TABLE doubt; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT ON TABLE zerotail.doubt TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.doubt TO zerotail_reader;
GRANT SELECT,UPDATE ON TABLE zerotail.doubt TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.doubt TO zerotail_truncator;


--
-- Name: TABLE epoch; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT ON TABLE zerotail.epoch TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.epoch TO zerotail_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.epoch TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.epoch TO zerotail_truncator;


--
-- Name: TABLE head; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.head TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.head TO zerotail_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.head TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.head TO zerotail_truncator;


--
-- Name: TABLE instruction; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT ON TABLE zerotail.instruction TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.instruction TO zerotail_reader;
GRANT SELECT,UPDATE ON TABLE zerotail.instruction TO zerotail_operator;
GRANT SELECT,DELETE ON TABLE zerotail.instruction TO zerotail_truncator;


--
-- Name: TABLE lane; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.lane TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.lane TO zerotail_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.lane TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.lane TO zerotail_truncator;


--
-- Name: TABLE outbox; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT ON TABLE zerotail.outbox TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.outbox TO zerotail_reader;
GRANT SELECT,UPDATE ON TABLE zerotail.outbox TO zerotail_operator;
GRANT SELECT,DELETE ON TABLE zerotail.outbox TO zerotail_truncator;


--
-- Name: TABLE producer; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT ON TABLE zerotail.producer TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.producer TO zerotail_reader;
GRANT SELECT,INSERT ON TABLE zerotail.producer TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.producer TO zerotail_truncator;


--
-- Name: TABLE owed; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT ON TABLE zerotail.owed TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.owed TO zerotail_reader;
GRANT SELECT ON TABLE zerotail.owed TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.owed TO zerotail_truncator;


--
-- Name: TABLE poison; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.poison TO zerotail_writer;
GRANT SELECT,UPDATE ON TABLE zerotail.poison TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.poison TO zerotail_reader;
GRANT SELECT ON TABLE zerotail.poison TO zerotail_truncator;


--
-- Name: TABLE process; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE zerotail.process TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.process TO zerotail_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.process TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.process TO zerotail_truncator;


--
-- Name: TABLE rejoined; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT ON TABLE zerotail.rejoined TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.rejoined TO zerotail_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.rejoined TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.rejoined TO zerotail_truncator;


--
-- Name: TABLE request; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.request TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.request TO zerotail_reader;
GRANT SELECT ON TABLE zerotail.request TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.request TO zerotail_truncator;


--
-- Name: TABLE segment; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT ON TABLE zerotail.segment TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.segment TO zerotail_reader;
GRANT SELECT,UPDATE ON TABLE zerotail.segment TO zerotail_operator;
GRANT SELECT,DELETE ON TABLE zerotail.segment TO zerotail_truncator;


--
-- Name: TABLE state; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE zerotail.state TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.state TO zerotail_reader;
GRANT SELECT ON TABLE zerotail.state TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.state TO zerotail_truncator;


--
-- Name: TABLE step; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT ON TABLE zerotail.step TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.step TO zerotail_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE zerotail.step TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.step TO zerotail_truncator;


--
-- Name: TABLE submission; Type: ACL; Schema: zerotail; Owner: -
--

GRANT SELECT,INSERT,DELETE ON TABLE zerotail.submission TO zerotail_writer;
GRANT SELECT ON TABLE zerotail.submission TO zerotail_reader;
GRANT SELECT,UPDATE ON TABLE zerotail.submission TO zerotail_operator;
GRANT SELECT ON TABLE zerotail.submission TO zerotail_truncator;


--
-- PostgreSQL database dump complete
--


