"""`zerotail journal`: look at the order journal, compute it again, compare the sites."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from zerotail.cli.database_options import (
    ANSWER_SECONDS,
    Database,
    chosen_database,
    chosen_pair,
    chosen_transforms,
    database_options,
    peer_option,
    place_options,
)
from zerotail.cli.output import json_option, print_answer, print_json, tick
from zerotail.errors import Misused, Refused

if TYPE_CHECKING:
    from zerotail.cli.answers import JournalShown
    from zerotail.postgres.comparison import Compared
    from zerotail.postgres.connection import Connection
    from zerotail.postgres.verification import Verified
    from zerotail.running.shadow import Shadowed

_RUNS_SHOWN = 6

records_option = click.option("--records", is_flag=True, help="List every record with the digest of its value.")


@click.group("journal", epilog="Example:  zerotail journal verify")
def command() -> None:
    """The order journal: what each stage took, in which order, and whether it is still what it was."""


@command.command("show", epilog="Example:  zerotail journal show --stage settle --partition 0 --from 1 --count 5")
@place_options
@click.option(
    "--from", "first", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="First segment."
)
@click.option("--count", type=click.IntRange(0, 10_000), default=10, show_default=True, metavar="K", help="Segments.")
@records_option
@database_options
@json_option
def show(stage: str | None, partition: int | None, first: int, count: int, **rest: Any) -> None:
    """Segments from one on: positions, runs, digests."""
    _show(stage, partition, lambda _last: (first, count), **rest)


@command.command("tail", epilog="Example:  zerotail journal tail --stage settle --count 3 --records")
@place_options
@click.option("--count", type=click.IntRange(0, 10_000), default=10, show_default=True, metavar="K", help="Segments.")
@records_option
@database_options
@json_option
def tail(stage: str | None, partition: int | None, count: int, **rest: Any) -> None:
    """The last segments of every stage and partition."""
    _show(stage, partition, lambda last: (max(1, last - count + 1), count), **rest)


@command.command("verify", epilog="Example:  zerotail journal verify --site west")
@place_options
@database_options
@json_option
def verify(
    stage: str | None, partition: int | None, config: str | None, site: str | None, dsn: str | None, as_json: bool
) -> int:
    """Compute positions, serials, emission numbers and both hash chains again, from the stored values.

    Names the first segment that is wrong. Exits with 0 when everything is right, with 1 when not.
    """
    from zerotail.postgres.verification import find_places, verify_partition

    database, transforms = chosen_database(config, site, dsn), chosen_transforms(config, dsn)
    with _looking_at(database) as connection:
        places = _require_places([*find_places(connection, stage, partition)], database)
        journals = tuple(verify_partition(connection, name, number, transforms) for name, number in places)
    well = all(journal.fault is None for journal in journals)
    if as_json:
        from zerotail.cli.answers import JournalVerifyAnswer

        print_json("journal-verify", JournalVerifyAnswer(well, database.name, journals))
    else:
        print_answer("\n".join(line for journal in journals for line in _verified(journal)))
    return 0 if well else 1


@command.command("replay", epilog="Example:  zerotail journal replay --site west")
@place_options
@database_options
@json_option
def replay(
    stage: str | None, partition: int | None, config: str | None, site: str | None, dsn: str | None, as_json: bool
) -> int:
    """Run the handlers over the whole journal again, sending nothing, and compare hashes and state with what is stored.

    Names the first difference with its place. Exits with 0 when there is none, with 1 when there is one.
    """
    from zerotail.cli.configured import load_with_code
    from zerotail.postgres.verification import find_places
    from zerotail.running.parts import plan_parts
    from zerotail.running.shadow import Shadow

    if dsn is not None:
        raise Misused("a replay needs the handlers, which only a configuration names; leave out --dsn.")
    parts = {part.name: part for part in plan_parts(load_with_code(config), (), None).stages}
    database, transforms = chosen_database(config, site, dsn), chosen_transforms(config, dsn)
    with _looking_at(database) as connection:
        places = _require_places([*find_places(connection, stage, partition)], database)
        replays = tuple(
            Shadow.from_the_beginning(parts[name].at(number), transforms, connection).catch_up(connection)
            for name, number in places
            if name in parts
        )
    well = all(one.equal for one in replays)
    if as_json:
        from zerotail.cli.answers import JournalReplayAnswer

        print_json("journal-replay", JournalReplayAnswer(well, database.name, replays))
    else:
        print_answer("\n".join(_replayed(one) for one in replays))
    return 0 if well else 1


def _replayed(one: Shadowed) -> str:
    place = f"{tick(one.equal, sys.stdout)} {one.stage} partition {one.partition}"
    if one.difference is not None:
        return f"{place}: {one.difference}"
    return f"{place}: {one.segments} segments, {one.records} records, {one.keys} state keys, all as recorded"


@command.command("compare", epilog="Example:  zerotail journal compare")
@place_options
@database_options
@peer_option
@json_option
def compare(
    stage: str | None,
    partition: int | None,
    config: str | None,
    site: str | None,
    dsn: str | None,
    peer_dsn: str | None,
    as_json: bool,
) -> int:
    """Site against site, segment by segment, up to where both have come.

    Names the first difference. Exits with 0 when there is none, with 1 when there is one.
    """
    from zerotail.postgres.comparison import compare_journals

    here, there = chosen_pair(config, site, dsn, peer_dsn)
    if there is None:
        raise Misused("there is nothing to compare with.", tries=["zerotail journal compare --dsn DSN --peer-dsn DSN"])
    with _looking_at(here) as ours, _looking_at(there) as theirs:
        journals = compare_journals(ours, theirs, stage, partition)
    _require_places(journals, here)
    equal = all(journal.difference is None for journal in journals)
    if as_json:
        from zerotail.cli.answers import JournalCompareAnswer

        print_json("journal-compare", JournalCompareAnswer(equal, here.name, there.name, journals))
    else:
        lines = [f"here {here.name}, there {there.name}"]
        print_answer("\n".join([*lines, *(line for journal in journals for line in _compared(journal))]))
    return 0 if equal else 1


@contextmanager
def _looking_at(database: Database) -> Iterator[Connection]:
    from zerotail.deadline import Deadline
    from zerotail.postgres.connection import session, snapshot

    with session(database.dsn, Deadline.after(ANSWER_SECONDS)) as connection, snapshot(connection):
        yield connection


def _require_places(places: Any, database: Database) -> Any:
    if not places:
        raise Refused(f"{database.name} has no journal of such a stage and partition.", tries=["zerotail journal tail"])
    return places


def _show(
    stage: str | None,
    partition: int | None,
    wanted: Callable[[int], tuple[int, int]],
    *,
    config: str | None,
    site: str | None,
    dsn: str | None,
    records: bool,
    as_json: bool,
) -> None:
    from zerotail.cli.answers import JournalShowAnswer
    from zerotail.cli.journal_shown import journal_shown
    from zerotail.postgres.verification import find_places

    database = chosen_database(config, site, dsn)
    transforms = chosen_transforms(config, dsn) if records else None
    with _looking_at(database) as connection:
        places = _require_places([*find_places(connection, stage, partition)], database)
        journals = tuple(journal_shown(connection, place, wanted, transforms) for place in places)
    if as_json:
        print_json("journal-show", JournalShowAnswer(database.name, journals))
    else:
        print_answer("\n".join(line for journal in journals for line in _told(journal)))


def _told(journal: JournalShown) -> Iterator[str]:
    head = journal.head
    if head is None:
        yield f"{journal.stage} partition {journal.partition} · no head"
    else:
        yield (
            f"{journal.stage} partition {journal.partition} · epoch {head.epoch} · {head.segment} segments · "
            f"{head.next_position} records · chain {head.chain[:16]}"
        )
    for segment in journal.segments:
        runs = " ".join(f"{producer}:{first}+{count}" for producer, first, count in segment.runs[:_RUNS_SHOWN])
        more = f" … {len(segment.runs)} runs" if len(segment.runs) > _RUNS_SHOWN else ""
        positions = f"{segment.first_position}–{segment.next_position - 1}"
        yield (
            f"  segment {segment.segment:<6} {positions:<15} epoch {segment.epoch}  {segment.decided_at}  "
            f"version {segment.version}  {segment.chain[:16]}  {runs}{more}"
        )
        for record in segment.records or ():
            digest = record.digest or "no value is stored"
            yield f"    {record.position:>12}  producer {record.producer}  serial {record.serial:<10}  {digest}"


def _verified(journal: Verified) -> Iterator[str]:
    place = f"{journal.stage} partition {journal.partition}"
    seen = f"{journal.segments} segments, {journal.records} records, chain {journal.chain[:16]}"
    fault = journal.fault
    if fault is None:
        yield f"{tick(True, sys.stdout)} {place}: {seen}"
        return
    yield f"{tick(False, sys.stdout)} {place}: wrong at segment {fault.segment}, position {fault.position}"
    yield f"    {fault.rule}: {fault.what}"
    yield f"    right up to there: {seen}"


def _compared(journal: Compared) -> Iterator[str]:
    place = f"{journal.stage} partition {journal.partition}"
    seen = f"{journal.equal_segments} segments are equal (here {journal.segments_here}, there {journal.segments_there})"
    difference = journal.difference
    if difference is None:
        yield f"{tick(True, sys.stdout)} {place}: {seen}, chain {journal.chain[:16]}"
        return
    where = f"segment {difference.segment}, position {difference.position}"
    yield f"{tick(False, sys.stdout)} {place}: {where}: {difference.what}"
    yield f"    {seen}"
