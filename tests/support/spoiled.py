"""What somebody with a superuser's rights may do to a journal, each with the place where it must be found."""

from __future__ import annotations

from dataclasses import dataclass

_SEGMENT = "where stage = 'settle' and partition = 0 and segment = {}"


@dataclass(frozen=True)
class Spoiled:
    """One planted fault: the statement, and what verification must answer."""

    name: str
    statement: str
    rule: str
    segment: int
    record: tuple[int, int] | None = None
    stage: str = "settle"

    def __str__(self) -> str:
        return self.name


def _flipped(table: str, column: str, where: str, byte: int = 0) -> str:
    return f"update zerotail.{table} set {column} = set_byte({column}, {byte}, get_byte({column}, {byte}) # 1) {where}"


def _swapped(column: str, table: str, key: str, where: str, one: int, other: int) -> str:
    return (
        f"update zerotail.{table} as mine set {column} = other.{column} from zerotail.{table} as other "
        f"where {where.format('mine')} and {where.format('other')} "
        f"and ((mine.{key} = {one} and other.{key} = {other}) or (mine.{key} = {other} and other.{key} = {one}))"
    )


_CARDS = "where producer = 1 and partition = 0 and serial = {}"
_BANK = "where channel = 'bank' and partition = 0 and segment = {}"

SPOILED = (
    Spoiled("a flipped byte in an order", _flipped("segment", "record_order", _SEGMENT.format(4), 3), "records", 4),
    Spoiled("a flipped byte in a value", _flipped("instruction", "value", _CARDS.format(40)), "chain", 3),
    Spoiled("a flipped byte in a message", _flipped("outbox", "messages", _BANK.format(4), 9), "output chain", 4),
    Spoiled("a flipped length of a message", _flipped("outbox", "messages", _BANK.format(2), 0), "output chain", 2),
    Spoiled("a wrong hash", _flipped("segment", "chain", _SEGMENT.format(3), 31), "chain", 3),
    Spoiled("a wrong output hash", _flipped("segment", "output_chain", _SEGMENT.format(3), 5), "output chain", 3),
    Spoiled(
        "another time", f"update zerotail.segment set decided_at = decided_at + 1 {_SEGMENT.format(2)}", "chain", 2
    ),
    Spoiled("a time that falls", f"update zerotail.segment set decided_at = 1 {_SEGMENT.format(2)}", "times", 2),
    Spoiled("another version", f"update zerotail.segment set version = '2' {_SEGMENT.format(5)}", "chain", 5),
    Spoiled("a later epoch", f"update zerotail.segment set epoch = 513 {_SEGMENT.format(2)}", "chain", 2),
    Spoiled("an epoch that falls", f"update zerotail.segment set epoch = 255 {_SEGMENT.format(5)}", "epochs", 5),
    Spoiled("a deleted segment", f"delete from zerotail.segment {_SEGMENT.format(3)}", "segments", 3),
    Spoiled("the first segment deleted", f"delete from zerotail.segment {_SEGMENT.format(1)}", "segments", 1),
    Spoiled("the last segment deleted", f"delete from zerotail.segment {_SEGMENT.format(6)}", "head", 6),
    Spoiled("a deleted instruction", f"delete from zerotail.instruction {_CARDS.format(33)}", "records", 2, (1, 33)),
    Spoiled("a deleted outbox row", f"delete from zerotail.outbox {_BANK.format(4)}", "output chain", 4),
    Spoiled(
        "two swapped segments",
        "update zerotail.segment set segment = case segment when 2 then -4 else -2 end "
        "where stage = 'settle' and partition = 0 and segment in (2, 4); "
        "update zerotail.segment set segment = -segment where segment < 0",
        "positions",
        2,
    ),
    Spoiled(
        "two swapped values",
        _swapped("value", "instruction", "serial", "{0}.producer = 1 and {0}.partition = 0", 36, 44),
        "chain",
        3,
    ),
    Spoiled(
        "two swapped orders",
        _swapped("record_order", "segment", "segment", "{0}.stage = 'settle' and {0}.partition = 0", 1, 4),
        "records",
        1,
    ),
    Spoiled("other counts", f"update zerotail.segment set counts = '{{31, 19}}' {_SEGMENT.format(1)}", "records", 1),
    Spoiled(
        "other first serials",
        f"update zerotail.segment set first_serials = '{{1, 2}}' {_SEGMENT.format(1)}",
        "serials",
        1,
        (2, 2),
    ),
    Spoiled(
        "fewer first serials", f"update zerotail.segment set first_serials = '{{1}}' {_SEGMENT.format(1)}", "records", 1
    ),
    Spoiled(
        "another position", f"update zerotail.segment set first_position = 51 {_SEGMENT.format(2)}", "positions", 2
    ),
    Spoiled("another vector", "update zerotail.head set vector = '{\"1\": 1}' where partition = 0", "head", 6),
    Spoiled(
        "a head in front", "update zerotail.head set segment = 5 where stage = 'settle' and partition = 0", "head", 5
    ),
    Spoiled("no head", "delete from zerotail.head where stage = 'settle' and partition = 0", "head", 0),
    Spoiled(
        "a message that the next stage took",
        _flipped("outbox", "messages", "where channel = 'moves' and partition = 0 and segment = 4", 9),
        "output chain",
        4,
    ),
)
