"""Replay: run the handler over the order journal again, sending nothing, and compare what comes out.

A replay that arrives at another hash than the one recorded means that the handler is not deterministic,
that its code is another one, or that the journal was changed. Nobody may go live on it (I11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from zerotail.core.chain import Chain
from zerotail.core.emission import Owed
from zerotail.core.head import Head, Segment
from zerotail.errors import Broken
from zerotail.flow.apply import Order, SpoiledError, apply_opened, open_order
from zerotail.flow.stage import Stage


@dataclass(slots=True)
class Replay:
    """A stage rebuilt from its journal, segment by segment."""

    stage: Stage
    head: Head
    state: dict[str, bytes] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """Keys that were written; whoever compares them empties it."""

    def apply(self, segment: Segment, values: Sequence[bytes]) -> Owed:
        """Apply one segment; `Broken` when it does not give the recorded hashes."""
        require_rows(segment, values)
        records = segment.records
        order = Order(
            [producer for producer, _ in records],
            [serial for _, serial in records],
            segment.digests,
            values,
            segment.decided,
        )
        try:
            opened = open_order(self.stage.handler, self.head.next_position, order)
            stored = {key: self.state[key] for key in opened.needed if key in self.state}
            before = replace(self.head, epoch=segment.epoch, hint=None)
            applied = apply_opened(self.stage, before, opened, stored, segment.decided_at, segment.version, None)
        except SpoiledError as spoiled:
            raise self._broken(segment, f"fails at place {spoiled.place}: {spoiled}") from spoiled
        self._require_equal("input", segment, segment.chain, applied.segment.chain)
        self._require_equal("output", segment, segment.output_chain, applied.segment.output_chain)
        self.changed.update(applied.state)
        for key, value in applied.state.items():
            if value is None:
                self.state.pop(key, None)
            else:
                self.state[key] = value
        self.head = applied.head
        return applied.owed

    def _require_equal(self, which: str, segment: Segment, recorded: Chain, found: Chain) -> None:
        if recorded != found:
            raise self._broken(
                segment, f"gives another {which} chain: recorded {recorded.hex()[:16]}, found {found.hex()[:16]}"
            )

    def _broken(self, segment: Segment, what: str) -> Broken:
        return Broken(
            f"the replay of {self.stage.name} partition {self.stage.partition} at segment {segment.segment} {what}",
            code="ZT441",
            why="The handler depends on more than it is given, or its code changed.",
            tries=("zerotail journal show    says which version made which segment", "zerotail journal verify"),
        )


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
