"""`zerotail emissions`: what is owed to the outside, and the operator's word on what is in doubt."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zerotail.cli.output import json_option, print_answer, print_json
from zerotail.errors import Misused, Refused, Unfinished

if TYPE_CHECKING:
    from zerotail.postgres.connection import Connection
    from zerotail.postgres.doubt import OpenDoubt
    from zerotail.postgres.owed import Backlog

T = TypeVar("T")
_MOST_AT_ONCE = 10_000
_EXPOSED = "EXPOSED: no other site confirms what is sent now."


def _place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which database: that of a site of the configuration, or one given directly."""
    for option in (
        click.option("--dsn", metavar="DSN", help="The database itself, instead of a configuration and a site."),
        click.option("--site", metavar="SITE", help="The site whose database is asked: the active one."),
        click.option("--config", "path", metavar="PATH", help="The configuration; else as for `config check`."),
    ):
        function = option(function)
    return function


@click.group("emissions", epilog="Example:  zerotail emissions list --in-doubt --site east")
def command() -> None:
    """What is owed to the outside, and what is in doubt."""


@command.command("list", epilog="Example:  zerotail emissions list --in-doubt --site east")
@click.option("--in-doubt", is_flag=True, help="Only the messages that may or may not have arrived, one by one.")
@click.option("--channel", metavar="C", help="Only this channel.")
@_place_options
@json_option
def list_emissions(
    in_doubt: bool, channel: str | None, path: str | None, site: str | None, dsn: str | None, as_json: bool
) -> int:
    """What each lane owes: the last number given, the last one acknowledged, and what lies between them.

    With --in-doubt, exits with 1 when there is something to settle.
    """
    from zerotail.cli.answers import EmissionsListAnswer
    from zerotail.core.identity import ChannelName
    from zerotail.postgres.doubt import read_open_doubts
    from zerotail.postgres.lane_stop import read_stops
    from zerotail.postgres.lineage import is_exposed
    from zerotail.postgres.owed import read_backlogs

    wanted = None if channel is None else ChannelName(channel)

    def look(connection: Connection) -> EmissionsListAnswer:
        return EmissionsListAnswer(
            () if in_doubt else tuple(read_backlogs(connection, wanted)),
            tuple(read_open_doubts(connection, wanted)),
            is_exposed(connection),
            () if in_doubt else tuple(read_stops(connection, wanted)),
        )

    found = _ask(_dsn_of(path, site, dsn), look, writes=False)
    if as_json:
        print_json("emissions-list", found)
    else:
        lines = _doubt_lines(found.doubts) if in_doubt else _lane_lines(found.lanes, found.doubts)
        lines += [f"{one.channel} partition {one.partition} has stopped: {one.reason}" for one in found.stops]
        print_answer("\n".join([*([_EXPOSED] if found.exposed else []), *lines]))
    return 1 if in_doubt and found.doubts else 0


@command.command(
    "settle",
    epilog="Example:  zerotail emissions settle --channel fax --partition 0 --numbers 5-7 --as sent --by anna",
)
@click.option("--channel", metavar="C", required=True, help="The channel.")
@click.option("--partition", metavar="P", type=click.IntRange(0), required=True, help="The partition of the stage.")
@click.option("--numbers", metavar="N-M", required=True, help="Which messages: 5, or 5-7.")
@click.option("--as", "word", type=click.Choice(["sent", "not-sent"]), required=True, help="What became of them.")
@click.option("--by", "operator", metavar="NAME", required=True, help="Who decides; it is written down.")
@click.option("--sender-is-out", is_flag=True, help="The sender before was seen to be gone: do not wait for its lease.")
@_place_options
@json_option
def settle_emissions(
    channel: str,
    partition: int,
    numbers: str,
    word: str,
    operator: str,
    sender_is_out: bool,
    path: str | None,
    site: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Say of messages in doubt whether they arrived; the waiting sender goes on as soon as none is left.

    Ask the receiver first: a message settled as sent that did not arrive is lost, one settled as not sent that did is
    sent twice. Only what the newest sender has listed can be settled, three seconds later: a sender of before that goes
    on meanwhile sends nothing any more then.
    """
    from zerotail.cli.answers import EmissionsSettleAnswer
    from zerotail.core.emission import Lane
    from zerotail.core.identity import ChannelName, EmissionNumber, PartitionNumber
    from zerotail.postgres import doubt

    first, last = _range_of(numbers)
    lane = Lane(ChannelName(channel), PartitionNumber(partition))
    decision = doubt.SENT if word == "sent" else doubt.NOT_SENT

    def decide(connection: Connection) -> list[OpenDoubt]:
        doubt.settle(
            connection,
            lane,
            EmissionNumber(first),
            EmissionNumber(last),
            decision,
            operator,
            sender_is_out=sender_is_out,
        )
        return doubt.read_open_doubts(connection, lane.channel)

    left = [one.number for one in _ask(_dsn_of(path, site, dsn), decide) if one.lane == lane and not one.settled]
    if as_json:
        settled = tuple(range(first, last + 1))
        print_json("emissions-settle", EmissionsSettleAnswer(channel, partition, settled, word, operator, tuple(left)))
        return
    after = f"{len(left)} of this lane are still in doubt." if left else "Nothing of this lane is in doubt any more."
    print_answer(f"{channel} partition {partition}: {numbers} settled as {word} by {operator}. {after}")


@command.command("resume", epilog="Example:  zerotail emissions resume --channel bank --partition 0 --by anna")
@click.option("--channel", metavar="C", required=True, help="The channel.")
@click.option("--partition", metavar="P", type=click.IntRange(0), required=True, help="The partition of the stage.")
@click.option("--by", "operator", metavar="NAME", required=True, help="Who decides; it is written down.")
@_place_options
@json_option
def resume_emissions(
    channel: str, partition: int, operator: str, path: str | None, site: str | None, dsn: str | None, as_json: bool
) -> None:
    """Let lanes go on that have stopped because their receiver stood where this history cannot have brought it.

    Mend that first: the receiver is asked again where it stands, and what it says is believed. Numbers that it has and
    that were given here meanwhile are taken for sent.
    """
    from zerotail.cli.answers import EmissionsResumeAnswer
    from zerotail.core.identity import ChannelName, PartitionNumber
    from zerotail.postgres.lane_stop import LaneStop, resume_lanes

    def decide(connection: Connection) -> list[LaneStop]:
        return resume_lanes(connection, ChannelName(channel), PartitionNumber(partition), operator)

    look = "zerotail emissions list    # which lanes have stopped, and why"
    reasons = tuple(one.reason for one in _ask(_dsn_of(path, site, dsn), decide, code="ZT606", look=look))
    if as_json:
        print_json("emissions-resume", EmissionsResumeAnswer(channel, partition, operator, reasons))
        return
    print_answer(f"{channel} partition {partition} goes on, decided by {operator}. It had stopped: {reasons[0]}")


def _range_of(numbers: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?", numbers)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not first <= last < first + _MOST_AT_ONCE:
        raise Misused("--numbers takes one number or a range of at most 10000, such as 5-7.")
    return first, last


def _dsn_of(path: str | None, site: str | None, dsn: str | None) -> str:
    from zerotail.config import load

    if dsn is not None:
        if path is not None or site is not None:
            raise Misused("--dsn names the database itself; leave --config and --site out.")
        return dsn
    if site is None:
        raise Misused("which site's database?", tries=["--site SITE", "--dsn DSN"])
    configuration = load(path)
    return configuration.sites[configuration.require_site(site)].database.dsn.reveal()


_LOOK = "zerotail emissions list --in-doubt    # what can be settled"


def _ask(
    dsn: str, work: Callable[[Connection], T], *, writes: bool = True, code: str = "ZT604", look: str = _LOOK
) -> T:
    from zerotail import ports
    from zerotail.postgres.connection import where
    from zerotail.postgres.transaction import Session

    session = Session(dsn, "zerotail emissions", patience_seconds=10.0)
    try:
        answer = session.write(work) if writes else session.read(work)
    finally:
        session.close()
    if isinstance(answer, ports.Refused):
        raise Refused(f"{answer.reason}.", code=code, tries=[look])
    if isinstance(answer, ports.Unreachable):
        raise session.silence(where(dsn))
    if isinstance(answer, ports.Indefinite):
        raise Unfinished("the database was lost while it stored the decision.", tries=[look])
    return answer


def _lane_lines(lanes: Sequence[Backlog], doubts: Sequence[OpenDoubt]) -> list[str]:
    if not lanes:
        return ["Nothing was ever owed."]
    lines = [
        f"{'channel':<16} {'part':>4} {'to':>4} {'given':>12} {'acknowledged':>12} {'owed':>9} {'bytes':>11}  in doubt"
    ]
    for lane in lanes:
        own = [doubt for doubt in doubts if doubt.lane == (lane.channel, lane.partition, lane.target)]
        target = str(lane.target) if lane.to_topic else "–"
        lines.append(
            f"{lane.channel:<16} {lane.partition:>4} {target:>4} {lane.journaled:>12} {lane.acknowledged:>12} "
            f"{lane.messages:>9} {lane.bytes:>11}  {len(own) or '–'}"
        )
    return lines


def _doubt_lines(doubts: Sequence[OpenDoubt]) -> list[str]:
    if not doubts:
        return ["Nothing is in doubt."]
    lines = [f"{'channel':<16} {'part':>4} {'number':>12} {'epoch':>8} {'sender':>8}  settled"]
    lines += [
        f"{doubt.channel:<16} {doubt.partition:>4} {doubt.number:>12} {doubt.epoch:>8} {doubt.incarnation:>8}  "
        f"{doubt.settled or '–'}"
        for doubt in doubts
    ]
    return lines
