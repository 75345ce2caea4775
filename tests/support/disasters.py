"""Journals and logs made up from a seed: what a stage took, and what a refill by others left in the topic."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from zerotail.core.continuity import SegmentRow
from zerotail.core.head import Head, advance, first_head
from zerotail.core.identity import Epoch, PartitionNumber, ProducerNumber, Serial, StageName
from zerotail.core.order import Runs
from zerotail.core.record import digest_of
from zerotail.core.restoration.journal import Journal, join_segments
from zerotail.core.segment import encode_order

EPOCH = Epoch(257)
Name = tuple[ProducerNumber, Serial]


@dataclass(frozen=True)
class Day:
    """What a stage took of one partition, segment by segment."""

    rows: tuple[SegmentRow, ...]
    head: Head
    taken: tuple[Name, ...]

    @property
    def journal(self) -> Journal:
        return join_segments(StageName("settle"), PartitionNumber(0), self.rows, self.head)


def value_of(name: Name) -> bytes:
    return b'{"producer": %d, "serial": %d}' % name


def make_day(seed: int, records: int, producers: int = 2, segment: int = 40, mean_run: int = 5) -> Day:
    """A journal of some records, in runs of about this length, in segments of at most this size."""
    chance = Random(seed)
    numbers = [ProducerNumber(number) for number in range(1, producers + 1)]
    head = first_head(EPOCH, numbers)
    rows: list[SegmentRow] = []
    taken: list[Name] = []
    owner = numbers[0]
    while len(taken) < records:
        owners, serials = [], []
        vector = dict(head.vector)
        for _ in range(min(chance.randint(1, segment), records - len(taken))):
            if chance.random() < 1 / mean_run:
                owner = chance.choice(numbers)
            vector[owner] = Serial(vector.get(owner, 0) + 1)
            owners.append(owner)
            serials.append(vector[owner])
        names = list(zip(owners, serials, strict=True))
        moved, made = advance(
            head,
            producers=owners,
            serials=serials,
            digests=[digest_of(value_of(name)) for name in names],
            decided_at=head.decided_at + 1,
            version="1",
            owed={},
            hint=None,
        )
        order = encode_order(Runs.of((producer, count) for producer, _, count in made.runs))
        first: dict[ProducerNumber, Serial] = {}
        for producer, serial in names:
            first.setdefault(producer, serial)
        rows.append(
            SegmentRow(
                made.segment,
                made.epoch,
                made.first_position,
                order,
                tuple(first[producer] for producer in order.producers),
                made.decided_at,
                made.version,
                made.chain,
                made.output_chain,
            )
        )
        head = moved
        taken += names
    return Day(tuple(rows), head, tuple(taken))


def refill_by_others(seed: int, taken: tuple[Name, ...], mean_run: int = 7, repeats: float = 0.0) -> list[Name]:
    """The same records as independent producers write them again: each in order, the mixture another."""
    chance = Random(seed)
    queues: dict[ProducerNumber, list[Name]] = {}
    for name in taken:
        queues.setdefault(name[0], []).append(name)
    ends = dict.fromkeys(queues, 0)
    written: list[Name] = []
    while any(ends[producer] < len(queue) for producer, queue in queues.items()):
        producer = chance.choice([p for p, queue in queues.items() if ends[p] < len(queue)])
        for _ in range(max(1, int(chance.expovariate(1 / mean_run)))):
            if ends[producer] < len(queues[producer]):
                written.append(queues[producer][ends[producer]])
                ends[producer] += 1
        if chance.random() < repeats:
            ends[producer] = max(0, ends[producer] - chance.randint(0, mean_run))
    return written
