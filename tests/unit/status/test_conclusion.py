"""What the answers of two sites come to."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from zerotail.cli.status_shown import first_line, status_lines
from zerotail.core.gate import Gate, GateAnswer
from zerotail.core.identity import ChannelName, EmissionNumber, Epoch, Lsn, PartitionNumber, StageName, Timeline
from zerotail.core.standby import Follower
from zerotail.postgres.look import Books, DatabaseLook, EpochSeen, GateLook, HeadSeen
from zerotail.postgres.owed import Backlog
from zerotail.postgres.process import ProcessSeen
from zerotail.postgres.rights import MissingRight
from zerotail.status.answers import SiteAnswers, Unanswered
from zerotail.status.conclusion import Expected, conclude
from zerotail.status.values import StageStatus, Status

pytestmark = pytest.mark.fast

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=timezone(timedelta(hours=1)))
EPOCH = EpochSeen(256, "east", 1, "gated", "live", NOON, "")
HEAD = HeadSeen("settle", 0, 6, 250, 0.5, 0, None, 0.0)
BOOKS = Books(EPOCH, (HEAD,), (), (), (), (), frozenset({"east", "west"}))
FOLLOWER = Follower("west", "streaming", "sync", 0)
PRIMARY = DatabaseLook("primary", 1, 1, False, None, (FOLLOWER,), "FIRST 1 (west)", Lsn(1000), BOOKS, life="this")
STANDBY = DatabaseLook("standby", 1, 0, True, 0.0, (), "", Lsn(0), BOOKS)
ANSWER = GateAnswer(True, 1, Timeline(1), Epoch(256), Lsn(1000))
OPEN = GateLook(Gate.OPEN, ANSWER, 0)
SILENT = Unanswered(NOON, "no answer within 1 s")
EXPECTED = Expected({"settle": 1}, {"settle": 30.0}, holds_when_exposed=False)


def concluded(
    east: DatabaseLook | Unanswered = PRIMARY,
    west: DatabaseLook | Unanswered = STANDBY,
    gate: GateLook | Unanswered | None = OPEN,
    brokers: int | Unanswered = 1,
    expected: Expected = EXPECTED,
) -> Status:
    sites = [SiteAnswers("east", east, 1, 1), SiteAnswers("west", west, brokers, 3)]
    return conclude(sites, gate, expected, NOON)


def with_head(**changes: float | None) -> DatabaseLook:
    return replace(PRIMARY, books=replace(BOOKS, heads=(replace(HEAD, **changes),)))  # type: ignore[arg-type]


def only_stage(status: Status) -> StageStatus:
    (stage,) = status.stages
    return stage


def test_an_open_gate_and_a_live_cluster_are_ready() -> None:
    status = concluded()
    assert (status.answer, status.target, status.reasons, status.troubles) == ("ready", "west", (), ())
    assert first_line(status).startswith("READY for takeover to west     nothing would be lost: gate open, 0 B behind")


@pytest.mark.parametrize(
    ("verdict", "answer", "sentence"),
    [
        (Gate.BEHIND, ANSWER, "west has not flushed the last 7 bytes of east's log"),
        (Gate.NOT_A_STANDBY, replace(ANSWER, in_recovery=False), "west's database is no standby any more"),
        (Gate.OTHER_TIMELINE, replace(ANSWER, timeline=Timeline(2)), "west's database is on another timeline"),
        (Gate.OTHER_TIMELINE, replace(ANSWER, timeline=Timeline(0)), "west's database receives no log from east"),
        (Gate.OTHER_EPOCH, replace(ANSWER, epoch=Epoch(513)), "west's database is in another epoch"),
        (Gate.OTHER_SYSTEM, replace(ANSWER, system=2), "west's database is a copy of another one"),
    ],
)
def test_a_closed_gate_says_why_and_that_emission_stands(verdict: Gate, answer: GateAnswer, sentence: str) -> None:
    status = concluded(gate=GateLook(verdict, answer, 7))
    assert (status.answer, status.reasons) == ("not ready", (sentence,))
    assert status.troubles == (f"emission stands: gate closed: {sentence}; nothing is owed",)
    assert status.gate.open is False


@pytest.mark.parametrize(
    ("waits_for", "followers", "sentence"),
    [
        ("", (FOLLOWER,), "commits of east wait for nobody; to mend it: alter system set synchronous_standby_names = "),
        (
            "FIRST 1 (lyon)",
            (replace(FOLLOWER, sync_state="async"),),
            "every commit of east hangs: synchronous_standby_names is FIRST 1 (lyon), and west is streaming and async",
        ),
        ("FIRST 2 (west, south)", (FOLLOWER,), "every commit of east hangs: "),
        ("west", (replace(FOLLOWER, state="catchup"),), "every commit of east hangs: "),
        ("west", (), "every commit of east hangs: synchronous_standby_names is west, and nobody follows"),
        (
            "FIRST 1 (replica, west)",
            (Follower("replica", "streaming", "sync", 0), replace(FOLLOWER, sync_state="potential")),
            "commits of east return without west: synchronous_standby_names is FIRST 1 (replica, west), and replica is",
        ),
        ("west", (Follower("west", None, None, 0),), "east hides who follows: grant pg_read_all_stats to "),
    ],
)
def test_ready_says_that_a_commit_would_be_acknowledged_now(
    waits_for: str, followers: tuple[Follower, ...], sentence: str
) -> None:
    status = concluded(east=replace(PRIMARY, waits_for=waits_for, followers=followers))
    assert status.answer == "not ready"
    assert status.reasons[0].startswith(sentence)


def test_ready_says_that_whoever_asks_could_take_over_now() -> None:
    promote = MissingRight("promote a standby", "grant execute on function pg_promote(boolean, integer) to ada")
    west = replace(STANDBY, lacks=(promote,))
    status = concluded(west=west)
    assert (status.answer, status.reasons) == (
        "not ready",
        (f"the user of west's dsn may not promote a standby in a takeover: {promote.grant};",),
    )
    assert concluded(west=west, expected=replace(EXPECTED, promotes=False)).answer == "ready"


def test_ready_says_that_a_standby_could_leave_a_log_that_has_lost_its_end() -> None:
    grant = "grant alter system on parameter primary_conninfo to zerotail_writer"
    right = MissingRight("stop receiving the log of a primary that has lost the end of it", grant)
    assert concluded(west=replace(STANDBY, lacks=(right,))).reasons == (
        f"the emitters of west may not {right.what}: {grant};",
    )


def test_a_standby_that_cannot_leave_such_a_log_is_named() -> None:
    word = ProcessSeen("west", "emitter", "upstream", None, 7, "host", "stopped", "it could not", NOON, 0.5, {})
    status = concluded(replace(PRIMARY, books=replace(BOOKS, processes=(word,))))
    assert any("emitter upstream at west has stopped: it could not" in line for line in status.troubles)


def test_ready_says_that_the_code_is_there_and_could_be_replayed() -> None:
    status = concluded(expected=replace(EXPECTED, broken_code=("shop:Settle of stage settle cannot be loaded",)))
    assert (status.answer, status.reasons) == ("not ready", ("shop:Settle of stage settle cannot be loaded",))

    def of(made_by: tuple[str, ...], today: tuple[str, str]) -> Status:
        heads = (replace(HEAD, versions=made_by),)
        books = replace(BOOKS, heads=heads)
        expected = replace(EXPECTED, replays={"settle": today})
        return concluded(replace(PRIMARY, books=books), replace(STANDBY, books=books), expected=expected)

    for made_by in [(), ("new",), ("old",), ("new", "old")]:
        assert of(made_by, ("new", "old")).answer == "ready"
    status = of(("new", "other"), ("new", "old"))
    assert (status.answer, status.reasons) == (
        "not ready",
        (
            "segments of stage settle were made by version other, its code is new, and a takeover replays them: "
            "zerotail takeover plan --to west",
        ),
    )


def test_what_waits_behind_a_closed_gate_is_counted() -> None:
    zero, seven = EmissionNumber(0), EmissionNumber(7)
    names = (StageName("settle"), ChannelName("bank"), PartitionNumber(0), PartitionNumber(0))
    lane = Backlog(*names, False, seven, zero, zero, 7, 90)
    status = concluded(replace(PRIMARY, books=replace(BOOKS, lanes=(lane,))), SILENT, None)
    assert status.troubles[0] == "emission stands: gate closed: west's database does not answer; 7 messages wait"
    assert (only_stage(status).owed_messages, only_stage(status).owed_bytes) == (7, 90)


def test_a_standby_without_kafka_is_not_ready() -> None:
    assert concluded(brokers=0).reasons == ("no Kafka broker of west answers",)
    assert concluded(brokers=SILENT).answer == "not ready"
    assert concluded(brokers=1).answer == "ready"


def test_an_exposed_epoch_is_said_before_anything_else_even_with_an_open_gate() -> None:
    books = replace(BOOKS, epoch=replace(EPOCH, durability="exposed"))
    status = concluded(replace(PRIMARY, books=books))
    assert status.answer == "not ready"
    assert first_line(status).startswith("EXPOSED, NOT READY for takeover to west     east works without west")
    assert status.troubles == ()
    held = concluded(replace(PRIMARY, books=books), expected=replace(EXPECTED, holds_when_exposed=True))
    assert held.troubles[0].startswith("emission stands: the epoch is exposed and takeover.exposed is hold")


def test_without_the_active_site_the_answer_is_unknown_and_the_figures_are_the_other_sites() -> None:
    status = concluded(SILENT, STANDBY, None)
    assert (status.answer, status.target, status.told_by) == ("unknown", "west", "west")
    assert status.reasons == (
        "east's database does not answer; nobody knows whether west has the last that east wrote",
    )
    assert status.gate.open is None
    assert only_stage(status).applied == 250
    assert only_stage(status).journal_behind is None
    assert "(as west's database has it)" in "\n".join(status_lines(status))


def test_when_nobody_answers_nothing_is_zero_and_nothing_is_blank() -> None:
    refused = Unanswered(NOON, "Connection refused", "nobody listens")
    status = concluded(refused, SILENT, None, SILENT)
    assert (status.answer, status.answered, status.target, status.epoch) == ("unknown", False, None, None)
    assert status.reasons == ("east's database is down", "west's database does not answer")
    stage = only_stage(status)
    assert {stage.applied, stage.waiting, stage.owed_messages, stage.in_doubt, stage.lag_seconds} == {None}
    row = next(line for line in status_lines(status) if line.startswith(" settle"))
    assert "?  unknown since " in row
    assert row.endswith("east's database is down; west's database does not answer")


def test_a_site_that_was_not_asked_is_said_to_be_so() -> None:
    assert concluded(Unanswered(NOON, "not asked", "not asked")).reasons[0].startswith("east's database was not asked;")


def test_the_newer_epoch_is_believed_and_the_old_primary_is_named() -> None:
    newer = replace(EPOCH, epoch=513, site="west", timeline=2)
    west = replace(PRIMARY, timeline=2, books=replace(BOOKS, epoch=newer))
    status = concluded(PRIMARY, west, GateLook(Gate.NOT_A_STANDBY, replace(ANSWER, in_recovery=False), 0))
    assert (status.told_by, status.target, status.answer) == ("west", "east", "not ready")
    assert "east's database is a primary, too, in an older epoch: it must not work" in status.troubles


def test_a_promoted_database_without_an_epoch_is_a_takeover_that_has_begun() -> None:
    status = concluded(SILENT, replace(PRIMARY, timeline=2), None)
    assert status.answer == "unknown"
    assert "west's database is a primary, too, without an epoch of its own: a takeover has begun" in status.troubles


def test_two_standbys_are_not_ready() -> None:
    status = concluded(STANDBY, STANDBY, None)
    assert (status.answer, status.reasons) == (
        "not ready",
        ("east's database is no primary in an epoch of its own",),
    )


def test_tables_and_an_epoch_must_be_there() -> None:
    status = concluded(replace(PRIMARY, books=None), replace(STANDBY, books=None), None)
    assert status.reasons == ("east's database has not our tables: zerotail schema apply --site east",)
    empty = replace(BOOKS, epoch=None)
    begun = concluded(replace(PRIMARY, books=empty), replace(STANDBY, books=empty), None)
    assert (begun.answer, begun.reasons) == (
        "unknown",
        ("there is no epoch yet, nothing has begun: zerotail schema apply --first-epoch --site S",),
    )


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ((), "the sites have no numbers, so every act is refused: zerotail schema apply --site east"),
        (("east", "north"), "the database knows the sites east and north, so every act is refused"),
    ],
)
def test_who_could_take_over_but_would_be_refused_is_not_ready(known: tuple[str, ...], reason: str) -> None:
    status = concluded(replace(PRIMARY, books=replace(BOOKS, sites=frozenset(known))))
    assert (status.answer, status.reasons) == ("not ready", (reason,))


def test_segments_that_the_other_site_lacks_are_counted_only_inside_one_epoch() -> None:
    behind = replace(STANDBY, books=replace(BOOKS, heads=(replace(HEAD, segment=4),)))
    closed = GateLook(Gate.BEHIND, ANSWER, 7)
    assert only_stage(concluded(west=behind, gate=closed)).journal_behind == 2
    assert only_stage(concluded(west=behind)).journal_behind == 0, "what is behind the gate is there, replayed or not"
    assert behind.books is not None
    other = replace(behind, books=replace(behind.books, epoch=replace(EPOCH, epoch=513)))
    assert only_stage(concluded(west=other, gate=closed)).journal_behind is None


@pytest.mark.parametrize(
    ("waiting", "idle", "oldest", "stalled"),
    [
        (5, 31.0, 31.0, 31.0),
        (5, 40.0, 29.0, None),  # idle for long, but what waits came only just now
        (5, 29.0, 400.0, None),  # far behind, and it moves
        (0, 400.0, None, None),
        (5, 400.0, None, None),
    ],
)
def test_a_stage_is_stalled_when_records_wait_and_nothing_moves(
    waiting: int, idle: float, oldest: float | None, stalled: float | None
) -> None:
    status = concluded(with_head(waiting=waiting, idle_seconds=idle, oldest_seconds=oldest))
    assert only_stage(status).stalled_seconds == stalled
    assert any("is stalled" in trouble for trouble in status.troubles) == (stalled is not None)


def test_lag_is_unknown_not_zero_when_the_age_of_what_waits_is_unknown() -> None:
    assert only_stage(concluded(with_head(waiting=5, oldest_seconds=None))).lag_seconds is None
    assert only_stage(concluded(with_head(waiting=0, oldest_seconds=None))).lag_seconds == 0.0


def test_processes_that_stopped_or_are_silent_are_named_once() -> None:
    def process(role: str, doing: str, reason: str, silent: float) -> ProcessSeen:
        return ProcessSeen("east", role, "settle", 0, 7, "host", doing, reason, NOON, silent, {})

    books = replace(
        BOOKS,
        processes=(
            process("stage", "stopped", "a record that cannot be read", 90.0),
            process("emitter", "stopped", "superseded", 90.0),
            process("producer", "waiting", "no records", 5.1),
            process("follower", "working", "", 4.9),
        ),
    )
    status = concluded(replace(PRIMARY, books=books))
    assert only_stage(status).stopped == "a record that cannot be read"
    assert status.troubles == (
        "stage settle partition 0 has stopped: a record that cannot be read",
        "emitter settle/0 at east has stopped: superseded",
        "producer settle/0 at east is silent for 5 s (pid 7)",
    )


def process(
    role: str = "stage", doing: str = "working", silent: float = 0.5, *, site: str = "east", name: str = "settle"
) -> ProcessSeen:
    return ProcessSeen(
        site, role, name, 0, 7, "host", doing, "a record" if doing == "stopped" else "", NOON, silent, {}
    )


CARDS = process("producer", name="cards")
WAITS = {"waiting": 5, "idle_seconds": 6.0, "oldest_seconds": 6.0}
NOBODY = "5 records wait for partition 0 of stage settle, and nothing was heard of"


@pytest.mark.parametrize(
    ("head", "processes", "reason"),
    [
        ({}, (), None),  # nothing to do, and nobody there to do it
        (WAITS, (process(), CARDS), None),
        (WAITS | {"oldest_seconds": 4.0}, (), None),  # it came a moment ago
        (WAITS | {"idle_seconds": 4.0}, (), None),  # it moves
        (WAITS, (CARDS,), f"{NOBODY} stage settle: zerotail run all --site east"),
        (WAITS, (process(),), f"{NOBODY} producer cards: zerotail run all --site east"),
        (WAITS, (process(silent=6.0), CARDS), f"{NOBODY} stage settle: zerotail run all --site east"),
        (WAITS, (process(site="west"), CARDS), f"{NOBODY} stage settle: zerotail run all --site east"),
        (WAITS, (), f"{NOBODY} stage settle and producer cards: zerotail run all --site east"),
        (
            WAITS | {"idle_seconds": 31.0, "oldest_seconds": 31.0},
            (process(), CARDS),
            "stage settle partition 0 is stalled: 5 records wait, no progress for 31 s",
        ),
        ({}, (process(doing="stopped"),), "stage settle partition 0 has stopped: a record"),
        ({}, (process(doing="stopped", site="west"),), None),
    ],
)
def test_ready_says_that_what_waits_is_taken(
    head: dict[str, float], processes: tuple[ProcessSeen, ...], reason: str | None
) -> None:
    books = replace(BOOKS, heads=(replace(HEAD, **head),), processes=processes)  # type: ignore[arg-type]
    status = concluded(replace(PRIMARY, books=books), expected=replace(EXPECTED, producers={"settle": ("cards",)}))
    assert (status.answer, status.reasons) == (("ready", ()) if reason is None else ("not ready", (reason,)))


def test_who_was_last_heard_of_before_the_epoch_is_named_no_more() -> None:
    books = replace(BOOKS, epoch=replace(EPOCH, seconds_ago=60.0), processes=(process(silent=61.0), process(silent=59)))
    status = concluded(replace(PRIMARY, books=books))
    assert status.troubles == ("stage settle/0 at east is silent for 59 s (pid 7)",)
    assert [one.silent_seconds for one in status.processes] == [59]


def test_who_stopped_where_nothing_is_to_be_done_is_no_trouble() -> None:
    books = replace(BOOKS, processes=(process("emitter", "stopped", site="west"), process("follower", "stopped")))
    assert concluded(replace(PRIMARY, books=books)).troubles == ("follower settle/0 at east has stopped: a record",)


def test_nobody_is_called_silent_while_nobody_can_be_heard() -> None:
    books = replace(BOOKS, processes=(process(silent=90.0, site="west"),))
    assert not any("silent for" in one for one in concluded(SILENT, replace(STANDBY, books=books), None).troubles)


def test_a_stage_that_only_the_configuration_knows_has_not_begun() -> None:
    status = concluded(expected=replace(EXPECTED, partitions={"settle": 2}))
    (_, second) = status.stages
    assert second.unknown is not None
    assert second.unknown.reason == "it has not begun: the database has no head of it"
    assert status.answer == "ready"


def test_rows_that_were_set_aside_are_counted_with_the_line_to_type() -> None:
    look = "zerotail submissions set-aside list --site east"
    for count, words in ((1, "1 submitted row is"), (2000, "2,000 submitted rows are")):
        status = concluded(replace(PRIMARY, books=replace(BOOKS, set_aside=count)))
        assert (status.answer, status.set_aside) == ("ready", count)
        assert status.troubles == (f"{words} set aside, and no stage gets them until somebody decides: {look}",)
        assert f" ! {status.troubles[0]}" in status_lines(status)
    assert (concluded().set_aside, concluded(SILENT, SILENT, None).set_aside) == (0, None)
