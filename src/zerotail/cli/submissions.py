"""`zerotail submissions`: rows that were stored and could not become instructions, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zerotail.cli.database_options import Database, chosen_database, database_options
from zerotail.cli.output import json_option, print_answer, print_json
from zerotail.errors import Misused, Refused, Unfinished

if TYPE_CHECKING:
    from zerotail.postgres.connection import Connection
    from zerotail.postgres.set_aside import Resubmitted, SetAside

T = TypeVar("T")
_SHOWN = 160
_NUMBER = click.IntRange(1, 2**63 - 1)
_PARTITION = click.IntRange(0, 2**31 - 1)
_LIST = "zerotail submissions set-aside list"


@click.group("submissions", epilog=f"Example:  {_LIST} --site east")
def command() -> None:
    """Rows that were submitted without a serial, and could not be numbered."""


@command.group("set-aside", epilog=f"Example:  {_LIST} --site east")
def set_aside() -> None:
    """Rows whose identifier was taken before they were numbered: list, drop, resubmit."""


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Who decides."""
    return click.option(
        "--by", "operator", metavar="NAME", required=True, callback=_text, help="Who decides; it is written down."
    )(function)


def _text(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """What the database can store as text, within what an index of it takes."""
    if value is None:
        return None
    try:
        length = len(value.encode())
    except UnicodeEncodeError:
        length = 0
    if not 0 < length <= _most_bytes():
        raise Misused(f"{option.opts[0]} takes 1 to {_most_bytes()} bytes of UTF-8.")
    return value


def _most_bytes() -> int:
    from zerotail.core.intake import MOST_ID_BYTES

    return MOST_ID_BYTES


@set_aside.command("list", epilog=f"Example:  {_LIST} --site east")
@click.option("--all", "decided", is_flag=True, help="Also rows that were decided on, by whom and when.")
@database_options
@json_option
def list_rows(decided: bool, config: str | None, site: str | None, dsn: str | None, as_json: bool) -> int:
    """Rows that wait for a decision: what they are, why they could not be numbered, and what to type.

    A standby answers as well as a primary. Exits with 1 when a row waits for a decision.
    """
    from zerotail.cli.answers import SetAsideListAnswer
    from zerotail.postgres.set_aside import list_set_aside

    database = chosen_database(config, site, dsn)
    rows = _ask(database, lambda connection: list_set_aside(connection, decided=decided))
    if as_json:
        print_json("submissions-list", SetAsideListAnswer(tuple(rows)))
    else:
        place = f" --site {site}" if site else ""
        print_answer("\n".join([line for row in rows for line in _told(row, place)] or ["Nothing is set aside."]))
    return 1 if any(not row.decision for row in rows) else 0


@set_aside.command("drop", epilog="Example:  zerotail submissions set-aside drop 3 4 --by anna --site east")
@click.argument("numbers", metavar="NUMBER...", type=_NUMBER, nargs=-1, required=True)
@_operator
@database_options
@json_option
def drop_rows(
    numbers: tuple[int, ...], operator: str, config: str | None, site: str | None, dsn: str | None, as_json: bool
) -> None:
    """Decide that rows are not wanted: all that are named, or none. They are kept, with the decision."""
    from zerotail.cli.answers import SetAsideDropAnswer
    from zerotail.postgres.set_aside import drop

    database = chosen_database(config, site, dsn)
    changed = _ask(database, lambda connection: drop(connection, numbers, operator), writes=True)
    if as_json:
        print_json("submissions-drop", SetAsideDropAnswer(numbers, operator, tuple(changed)))
        return
    for number in numbers:
        known = "" if number in changed else ", which it was already; nothing changed"
        print_answer(f"row {number}: dropped{known or f', decided by {operator}'}.")


@set_aside.command(
    "resubmit", epilog="Example:  zerotail submissions set-aside resubmit 3 --id c-4711-b --by anna --site east"
)
@click.argument("number", type=_NUMBER)
@click.option(
    "--id", "identifier", metavar="NEW-ID", required=True, callback=_text, help="The identifier that it gets instead."
)
@click.option("--partition", metavar="P", type=_PARTITION, help="Another partition; else the one for which it came.")
@_operator
@click.option("--config", "config", metavar="PATH", help="The configuration; else ZEROTAIL_CONFIG, ./zerotail.yaml.")
@click.option("--site", metavar="S", help="The active site; else the preferred one.")
@json_option
def resubmit_row(
    number: int,
    identifier: str,
    partition: int | None,
    operator: str,
    config: str | None,
    site: str | None,
    as_json: bool,
) -> None:
    """Submit a row under an identifier that nobody has; done when the instruction is behind the gate.

    It takes a configuration and no --dsn, since both sites have a part in it. The same line again stores nothing twice.
    """
    from zerotail.cli.answers import SetAsideResubmitAnswer
    from zerotail.config import load
    from zerotail.core.identity import PartitionNumber
    from zerotail.postgres.set_aside import Wish
    from zerotail.resubmission import resubmit_set_aside

    configuration = load(config)
    place = configuration.preferred_site if site is None else configuration.require_site(site)
    wish = Wish(number, identifier, None if partition is None else PartitionNumber(partition), operator)
    stored = resubmit_set_aside(configuration, place, wish)
    if as_json:
        answer = SetAsideResubmitAnswer(
            number, identifier, stored.partition, stored.serial, operator, changed=stored.changed
        )
        print_json("submissions-resubmit", answer)
    else:
        print_answer(_outcome(number, identifier, operator, stored))


def _outcome(number: int, identifier: str, operator: str, stored: Resubmitted) -> str:
    what = f"row {number}: {identifier} is serial {stored.serial} of partition {stored.partition}, behind the gate"
    return f"{what}, decided by {operator}." if stored.changed else f"{what}; it was resubmitted before."


def _told(row: SetAside, place: str) -> Iterator[str]:
    """A row, as people read it."""
    from zerotail.handler import printable

    came, found = (moment.isoformat(timespec="seconds") for moment in (row.submitted_at, row.found_at))
    size = f"{row.bytes:,}".replace(",", " ")
    yield f"row {row.number} · {printable(row.id)} of {row.producer} · partition {row.partition}"
    yield f"  reason    {row.reason}"
    yield f"  came      {came}, set aside {found}"
    yield f"  value     {size} bytes: {_shortened(printable(row.beginning), row)}"
    if row.decision:
        when = row.decided_at.isoformat(timespec="seconds") if row.decided_at else ""
        yield f"  decision  {row.decision} by {row.decided_by}, {when}"
        if row.new_id is not None:
            yield f"  became    {printable(row.new_id)}, serial {row.new_serial} of partition {row.new_partition}"
    else:
        yield f"  type      zerotail submissions set-aside resubmit {row.number} --id NEW-ID --by NAME{place}"
        yield f"            zerotail submissions set-aside drop {row.number} --by NAME{place}"


def _shortened(text: str, row: SetAside) -> str:
    whole = len(text) <= _SHOWN and row.bytes <= len(row.beginning.encode())
    return text if whole else f"{text[:_SHOWN]}…"


def _ask(database: Database, work: Callable[[Connection], T], *, writes: bool = False) -> T:
    from zerotail import ports
    from zerotail.postgres.transaction import Session

    session = Session(database.dsn, "zerotail submissions", patience_seconds=10.0)
    try:
        answer = session.write(work) if writes else session.read(work)
    finally:
        session.close()
    if isinstance(answer, ports.Refused):
        from zerotail.resubmission import tries_after

        raise Refused(f"{answer.reason}; nothing was changed.", code="ZT466", tries=tries_after(answer.reason))
    if isinstance(answer, ports.Unreachable):
        raise session.silence(database.name)
    if isinstance(answer, ports.Indefinite):
        raise Unfinished("the database was lost while it stored the decision.", tries=[f"{_LIST} --all"])
    return answer
