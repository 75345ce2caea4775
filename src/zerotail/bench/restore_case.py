"""One disaster to measure: a journal in a database, and a topic that holds its records in another order.

Values have 100 bytes and say which record they are. The journal is written row by row as stages write it, in segments
of 1,000 records with real chains, so that every restore is proven while it is measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zerotail.bench.interleaving import Interleaving, interleave, serials_of
from zerotail.core.chain import GENESIS, link, packed_input_content
from zerotail.core.identity import Epoch, PartitionNumber, Position, ProducerNumber, SegmentNumber, StageName, TopicName
from zerotail.core.order import Numbers, Order, Runs
from zerotail.core.record import HEADER_BYTES, Digests, digest_of, encode_column
from zerotail.core.segment import encode_order
from zerotail.deadline import Deadline
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, ensure_topic
from zerotail.kafka.plain_writer import write_plainly
from zerotail.postgres.connection import Connection, connect
from zerotail.postgres.journal import create_head
from zerotail.postgres.lineage import read_standing

VALUE_BYTES = 100
SEGMENT_RECORDS = 1_000
MOST_PRODUCERS = 16
PARTITION = PartitionNumber(0)
_ROWS_AT_ONCE = 50_000
_RUN = np.dtype([("producer", "<u4"), ("serial", "<u8"), ("count", "<u4")])
_INSERT = (
    "insert into zerotail.segment (stage, partition, segment, epoch, first_position, producers, counts, first_serials, "
    "record_order, decided_at, version, chain, output_chain) "
    "values (%s, 0, %s, %s, %s, %s, %s, %s, %s, %s, '1', %s, %s)"
)


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured, and where it lies."""

    records: int
    interleaving: str
    producers: int

    @property
    def name(self) -> str:
        """Of the stage and of the topic."""
        return f"restore-{self.interleaving}-{self.producers}-{self.records}"

    @property
    def stage(self) -> StageName:
        """Whose journal it is."""
        return StageName(self.name)

    @property
    def topic(self) -> TopicName:
        """Where the records lie."""
        return TopicName(self.name)


def prepare_database(dsn: str) -> None:
    """Register the producers, and the stage that their rows are for."""
    with connect(dsn, Deadline.after(30)) as connection:
        for number in range(1, MOST_PRODUCERS + 1):
            connection.execute(
                b"insert into zerotail.producer (producer, name, topic, consumer) values (%s, %s, 'bench', 'bench') "
                b"on conflict do nothing",
                (number, f"bench-{number}"),
            )
        # Rows of a producer are taken only where its consumer has a place for them.
        create_head(connection, StageName("bench"), PARTITION, [*map(ProducerNumber, range(1, MOST_PRODUCERS + 1))])


def make_case(case: Case, dsn: str, cluster: Cluster, *, with_rows: bool = False) -> None:
    """Write the journal, the topic, and with `with_rows` the instruction rows."""
    made = interleave(case.interleaving, case.records, case.producers, seed=case.records + case.producers)
    digests = {
        producer: _digests(producer, int((made.journal == producer).sum())) for producer in range(1, case.producers + 1)
    }
    with connect(f"{dsn} options='-c synchronous_commit=local'", Deadline.after(30)) as connection:
        standing = read_standing(connection)
        epoch = standing.epoch
        with connection.transaction():
            write_journal(connection, case.stage, made, digests, epoch)
            if with_rows:
                _write_rows(connection, made)
    client = admin_client(cluster)
    ensure_topic(client, case.topic, TopicSettings(1, 1))
    write_plainly(cluster, case.topic, PARTITION, records_of(made.log, digests, epoch, standing.installation.mark))


def write_journal(
    connection: Connection, stage: StageName, made: Interleaving, digests: dict[int, Digests], epoch: Epoch
) -> None:
    """The segments and the head of one stage."""
    order = Order(Runs.of_records(made.journal))
    producers, serials = order.records_between(0, len(order))
    of_journal = _digests_of(producers, serials, digests)
    create_head(connection, stage, PARTITION, order.producers)
    chain, rows, number = GENESIS, [], 0
    for number, first in enumerate(range(0, len(order), SEGMENT_RECORDS), 1):
        end = min(first + SEGMENT_RECORDS, len(order))
        encoded = encode_order(Runs.of_records(producers[first:end]))
        begin_run, end_run, lengths = order.runs_between(first, end)
        runs = np.empty(end_run - begin_run, dtype=_RUN)
        runs["producer"], runs["count"] = order.runs.producers[begin_run:end_run], lengths
        runs["serial"] = serials[first + np.cumsum(lengths) - lengths]
        content = packed_input_content(
            epoch,
            SegmentNumber(number),
            Position(first),
            number,
            "1",
            runs.tobytes(),
            of_journal[first:end].astype("<u8").tobytes(),
        )
        chain = link(chain, content)
        firsts = [int(serials[first:end][producers[first:end] == one][0]) for one in encoded.producers]
        rows.append(
            (
                *(stage, number, epoch, first),
                *([*encoded.producers], [*encoded.counts], firsts, encoded.encoded),
                *(number, chain, bytes(32)),
            )
        )
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT.encode(), rows)
    connection.execute(
        b"update zerotail.head set segment = %s, next_position = %s, vector = %s, chain = %s, decided_at = %s "
        b"where stage = %s and partition = 0",
        (number, len(order), json.dumps(order.vector_after), chain, number, stage),
    )


def records_of(each: Numbers, digests: dict[int, Digests], epoch: Epoch, mark: int) -> Iterator[tuple[bytes, bytes]]:
    """Value and header of each record, in this order."""
    serials = serials_of(each)
    for first in range(0, len(each), _ROWS_AT_ONCE):
        producers, some = each[first : first + _ROWS_AT_ONCE], serials[first : first + _ROWS_AT_ONCE]
        column = encode_column(epoch, producers, some, _digests_of(producers, some, digests), mark)
        packed = column.buffers()[2].to_pybytes()
        for place, (producer, serial) in enumerate(zip(producers.tolist(), some.tolist(), strict=True)):
            yield value_of(producer, serial), packed[place * HEADER_BYTES : (place + 1) * HEADER_BYTES]


def value_of(producer: int, serial: int) -> bytes:
    """The value of one record."""
    return (b'{"producer": %d, "serial": %d, "padding": "' % (producer, serial)).ljust(VALUE_BYTES - 2, b".") + b'"}'


def _digests(producer: int, count: int) -> Digests:
    digests = b"".join([digest_of(value_of(producer, serial)) for serial in range(1, count + 1)])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _digests_of(producers: Numbers, serials: Numbers, digests: dict[int, Digests]) -> Digests:
    found = np.zeros(len(producers), dtype=np.uint64)
    for producer, known in digests.items():
        mine = producers == producer
        found[mine] = known[serials[mine] - 1]
    return found


def _write_rows(connection: Connection, made: Interleaving) -> None:
    counts = np.bincount(made.journal)
    with (
        connection.cursor() as cursor,
        cursor.copy(b"copy zerotail.instruction (producer, partition, serial, id, value) from stdin") as copy,
    ):
        for producer in range(1, len(counts)):
            for serial in range(1, int(counts[producer]) + 1):
                copy.write_row((ProducerNumber(producer), 0, serial, str(serial), value_of(producer, serial)))
