"""`zerotail poison`: records that stopped a partition, and what the operator decides about them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zerotail.cli.database_options import Database, chosen_database, database_options
from zerotail.cli.output import json_option, print_answer, print_json, say
from zerotail.errors import Misused, Refused, Unfinished

if TYPE_CHECKING:
    from zerotail.postgres.connection import Connection
    from zerotail.postgres.remedy import Spoiled, Wish

T = TypeVar("T")
_SHOWN = 160
_LARGEST_BYTES = 8 * 1024 * 1024
_EXAMPLE = "settle 0 cards 7 --digest 9f86d081884c7d65 --by anna"


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Which record is meant, as it was typed."""

    stage: str
    partition: int
    producer: str
    serial: int

    def __str__(self) -> str:
        return f"{self.stage} {self.partition} {self.producer} {self.serial}"


@click.group("poison", epilog="Example:  zerotail poison list --site east")
def command() -> None:
    """Records that stopped a partition, and what becomes of them: retry, skip, replace."""


@command.command("list", epilog="Example:  zerotail poison list --site east")
@click.option("--stage", metavar="S", help="This stage only.")
@click.option("--all", "taken", is_flag=True, help="Also records that were decided on and taken since.")
@database_options
@json_option
def list_records(
    stage: str | None, taken: bool, config: str | None, site: str | None, dsn: str | None, as_json: bool
) -> int:
    """The record at which each stopped partition stands, why, and what to type.

    A standby answers as well as a primary. Exits with 1 when a partition waits for a decision.
    """
    from zerotail.cli.answers import PoisonListAnswer
    from zerotail.core.identity import StageName
    from zerotail.postgres.remedy import list_spoiled

    wanted = None if stage is None else StageName(stage)
    found = _ask(chosen_database(config, site, dsn), lambda connection: list_spoiled(connection, wanted, taken=taken))
    if as_json:
        print_json("poison-list", PoisonListAnswer(tuple(found)))
    else:
        place = f" --site {site}" if site else ""
        lines = [line for one in found for line in _told(one, place)]
        print_answer("\n".join(lines or ["No partition waits for a decision."]))
    return 1 if any(one.waits for one in found) else 0


def _decision(function: Callable[..., Any]) -> Callable[..., Any]:
    """What every decision takes: the record, proof that the operator saw it, and who decides."""
    for option in (
        json_option,
        database_options,
        click.option("--by", "operator", metavar="NAME", required=True, help="Who decides; it is written down."),
        click.option("--confirm", is_flag=True, help="Whatever record stands there now; the question's yes."),
        click.option("--digest", metavar="HEX", help="Of the record that you saw: refused if it is another one."),
        click.argument("serial", type=click.IntRange(1)),
        click.argument("producer"),
        click.argument("partition", type=click.IntRange(0)),
        click.argument("stage"),
    ):
        function = option(function)
    return function


@command.command("retry", epilog=f"Example:  zerotail poison retry {_EXAMPLE}")
@_decision
def retry(stage: str, partition: int, producer: str, serial: int, **rest: Any) -> None:
    """Give the record to the handler again, after its code or what it needs was repaired.

    STAGE PARTITION PRODUCER SERIAL are as `poison list` shows them; PRODUCER is a name or a number.
    """
    _decide(Coordinates(stage, partition, producer, serial), "retry", None, **rest)


@command.command("skip", epilog=f"Example:  zerotail poison skip {_EXAMPLE}")
@_decision
def skip(stage: str, partition: int, producer: str, serial: int, **rest: Any) -> None:
    """Pass over the record: it keeps its place in the order, and the handler never sees it.

    It cannot be taken back once the stage has carried it out.
    """
    _decide(Coordinates(stage, partition, producer, serial), "skip", None, **rest)


@command.command("replace", epilog=f"Example:  zerotail poison replace {_EXAMPLE} --value repaired.json")
@_decision
@click.option("--value", "source", metavar="FILE|-", required=True, help="JSON that the handler gets instead.")
def replace(stage: str, partition: int, producer: str, serial: int, source: str, **rest: Any) -> None:
    """Give the handler another value in the record's place; the stored instruction stays what it is.

    A replacement at which the handler fails, too, stops the partition again.
    """
    _decide(Coordinates(stage, partition, producer, serial), "replace", _read_value(source), **rest)


def _decide(
    record: Coordinates,
    word: str,
    replacement: bytes | None,
    *,
    digest: str | None,
    confirm: bool,
    operator: str,
    config: str | None,
    site: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    from zerotail.cli.answers import PoisonDecideAnswer
    from zerotail.postgres.remedy import Wish, decide

    if digest is not None and not re.fullmatch(r"[0-9a-fA-F]{16}", digest):
        raise Misused("--digest takes the 16 hexadecimal digits that `zerotail poison list` shows.")
    database = chosen_database(config, site, dsn)
    stands = _ask(database, lambda connection: _find(connection, record))
    if digest is None:
        digest = _confirmed(stands, record, word, confirm=confirm)
    wish = Wish(
        stands.stage,
        stands.partition,
        stands.producer,
        stands.serial,
        digest.lower(),
        word,
        replacement,
        operator,
    )
    changed = _ask(database, lambda connection: decide(connection, wish), writes=True)
    if as_json:
        producer, serial = int(wish.producer), int(wish.serial)
        print_json(
            "poison-decide",
            PoisonDecideAnswer(record.stage, record.partition, producer, serial, wish.digest, word, operator, changed),
        )
    else:
        print_answer(_outcome(wish, changed))


def _outcome(wish: Wish, changed: bool) -> str:
    what = f"{wish.stage} partition {wish.partition}, serial {wish.serial} of producer {wish.producer}: {wish.remedy}"
    if not changed:
        return f"{what} was decided already; nothing changed."
    return f"{what}, decided by {wish.operator}. The stage carries it out when it looks next."


def _find(connection: Connection, record: Coordinates) -> Spoiled:
    from zerotail.core.identity import PartitionNumber, Serial, StageName
    from zerotail.postgres.remedy import find_producer, find_spoiled
    from zerotail.postgres.transaction import Declined

    producer = find_producer(connection, record.producer)
    if producer is None:
        raise Declined(f"there is no producer {record.producer!r}")
    place = (StageName(record.stage), PartitionNumber(record.partition))
    found = find_spoiled(connection, *place, producer, Serial(record.serial))
    if found is None:
        raise Declined(
            f"{record.stage} partition {record.partition} has not stopped at serial {record.serial} of producer "
            f"{record.producer}"
        )
    return found


def _confirmed(stands: Spoiled, record: Coordinates, word: str, *, confirm: bool) -> str:
    """The digest of the record that was shown and agreed to."""
    if not confirm and not sys.stdin.isatty():
        raise Refused(
            f"which record is to be decided on? A decision to {word} is bound to a digest.",
            code="ZT704",
            tries=[
                f"zerotail poison {word} {record} --digest {stands.digest} …",
                f"zerotail poison {word} {record} --confirm …    # whatever stands there",
            ],
        )
    for line in _told(stands, "", with_commands=False):
        say(line)
    if not confirm:
        typed = click.prompt(f"Type {word} to decide so", default="", show_default=False, err=True)
        if typed != word:
            raise Refused("nothing was decided.", code="ZT704")
    return stands.digest


def _read_value(source: str) -> bytes:
    import msgspec

    from zerotail.handler import decode_value

    try:
        with click.open_file(source, "rb") as file:
            value: bytes = file.read(_LARGEST_BYTES + 1).strip()
    except OSError as error:
        raise Misused(f"{source} cannot be read: {error.strerror}.", code="ZT705") from error
    if len(value) > _LARGEST_BYTES:
        raise Misused(f"the replacement is larger than {_LARGEST_BYTES} bytes.", code="ZT705")
    try:
        decode_value(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misused(f"the replacement is no JSON: {error}.", code="ZT705") from error
    return value


def _told(one: Spoiled, place: str, *, with_commands: bool = True) -> Iterator[str]:
    """A record, as people read it."""
    from zerotail.handler import printable

    name = f"{one.producer_name} (producer {one.producer})" if one.producer_name else f"producer {one.producer}"
    times = "once" if one.attempts == 1 else f"{one.attempts} times"
    place = "at the door of its producer" if one.position < 0 else f"position {one.position}"
    which = (
        f"serial {one.serial} of {name}" if one.producer else f"no instruction: offset {one.serial - 1} of the topic"
    )
    yield f"{one.stage} partition {one.partition} · {which} · {place}"
    yield f"  stopped   {times}, since {one.since.isoformat(timespec='seconds')}"
    yield f"  reason    {one.reason}"
    yield f"  digest    {one.digest}"
    yield f"  value     {_shortened(printable(one.value)) if one.value is not None else 'has no row here'}"
    if one.decision:
        when = one.decided_at.isoformat(timespec="seconds") if one.decided_at else ""
        state = "taken" if one.taken else "not carried out yet"
        yield f"  decision  {one.decision} by {one.decided_by}, {when}, {state}"
        if one.replacement is not None:
            yield f"  instead   {_shortened(printable(one.replacement))}"
    elif with_commands and one.waits:
        record = f"{one.stage} {one.partition} {one.producer_name or one.producer} {one.serial}"
        tail = f"{record} --digest {one.digest} --by NAME{place}"
        yield f"  type      zerotail poison retry {tail}"
        yield f"            zerotail poison skip {tail}"
        if one.producer:
            yield f"            zerotail poison replace {tail} --value FILE"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _ask(database: Database, work: Callable[[Connection], T], *, writes: bool = False) -> T:
    from zerotail import ports
    from zerotail.postgres.transaction import Session

    session = Session(database.dsn, "zerotail poison", patience_seconds=10.0)
    try:
        answer = session.write(work) if writes else session.read(work)
    finally:
        session.close()
    if isinstance(answer, ports.Refused):
        tries = ["zerotail poison list    # what waits for a decision"]
        if "standby" in answer.reason:
            tries = ["--site SITE    # the active one: that is where decisions are taken"]
        raise Refused(f"{answer.reason}.", code="ZT703", tries=tries)
    if isinstance(answer, ports.Unreachable):
        raise session.silence(database.name)
    if isinstance(answer, ports.Indefinite):
        raise Unfinished("the database was lost while it stored the decision.", tries=["zerotail poison list"])
    return answer
