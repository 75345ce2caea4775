"""Replay: run the handler over the order journal again, sending nothing, and compare what comes out.

A replay that arrives at another hash than the one recorded means that the handler is not deterministic,
that its code is another one, or that the journal was changed. Nobody may go live on it (I11).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from zerotail.core import head as heads
from zerotail.core.chain import Chain
from zerotail.core.emission import Owed, number_emissions
from zerotail.core.head import Head, Segment
from zerotail.core.identity import Position, ProducerNumber, Serial
from zerotail.errors import Broken
from zerotail.flow.stage import Stage
from zerotail.handler import Record, State, apply_in_order, decode_value


@dataclass(slots=True)
class Replay:
    """A stage rebuilt from its journal, segment by segment."""

    stage: Stage
    head: Head
    state: dict[str, bytes] = field(default_factory=dict)
    owed: list[Owed] = field(default_factory=list)

    def apply(self, segment: Segment, values: Sequence[bytes]) -> tuple[Owed, ...]:
        """Apply one segment; `Broken` when it does not give the recorded hashes."""
        names = list(positions_of(segment))
        require_rows(segment, values)
        records = [
            Record(producer, serial, position, decode_value(value))
            for (producer, serial, position), value in zip(names, values, strict=True)
        ]
        keys = [self.stage.handler.keys(record) for record in records]
        wanted = sorted({key for some in keys for key in some})
        state = State({key: self.state[key] for key in wanted if key in self.state})
        said = apply_in_order(
            self.stage.handler,
            records,
            state,
            keys,
            segment.decided_at,
            self.head.chain,
            self.stage.partitions_of,
        )
        owed = number_emissions(self.head.numbers, said)
        moved, replayed = heads.advance(
            Head(
                segment.epoch,
                self.head.segment,
                self.head.next_position,
                self.head.vector,
                self.head.numbers,
                self.head.chain,
                self.head.output_chain,
                self.head.decided_at,
            ),
            producers=[producer for producer, _, _ in names],
            serials=[serial for _, serial, _ in names],
            digests=segment.digests,
            decided_at=segment.decided_at,
            version=segment.version,
            owed=owed,
            hint=None,
        )
        self._require_equal("input", segment, segment.chain, replayed.chain)
        self._require_equal("output", segment, segment.output_chain, replayed.output_chain)
        for key, value in state.changes().items():
            if value is None:
                self.state.pop(key, None)
            else:
                self.state[key] = value
        self.head = moved
        self.owed += owed
        return owed

    def _require_equal(self, which: str, segment: Segment, recorded: Chain, found: Chain) -> None:
        if recorded != found:
            raise Broken(
                f"the replay of {self.stage.name} partition {self.stage.partition} gives another {which} "
                f"chain at segment {segment.segment}: recorded {recorded.hex()[:16]}, found "
                f"{found.hex()[:16]}",
                code="ZT441",
                why="The handler depends on more than it is given, or its code changed.",
                tries=("zerotail check --handler", "zerotail journal verify"),
            )


def positions_of(segment: Segment) -> Iterable[tuple[ProducerNumber, Serial, Position]]:
    """The records of a segment, in order."""
    position = segment.first_position
    for producer, first, count in segment.runs:
        for step in range(count):
            yield producer, Serial(first + step), position
            position = Position(position + 1)


def require_rows(segment: Segment, values: Sequence[bytes]) -> None:
    """`Broken` when a segment names a record whose row, or whose upstream emission, did not survive (I4)."""
    count = len(segment.digests)
    if len(values) != count:
        raise Broken(
            f"segment {segment.segment} names {count} records, of which {count - len(values)} have no row",
            code="ZT442",
            why="A record was taken that belongs to another history.",
            tries=("zerotail journal verify",),
        )
