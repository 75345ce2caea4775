"""One partition copied from cluster to cluster: what is kept, what happens twice, and what stops it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from support.copiers import copy_all, flow_of, orders
from support.mirrors import delete_topic, end_offset, make_topic, read, write
from support.seeds import seed_of
from zerotail.core.copying import Kind
from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.provenance import find_provenance
from zerotail.core.topology import Flow
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.copy import PartitionCopier
from zerotail.kafka.copy_order import Order, Outcome, place_group
from zerotail.kafka.places import Places
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import Layout
from zerotail.lab.power import cut_unflushed_tail
from zerotail.mirror.offsets import apply_positions, translate_group

KILLS = int(os.environ.get("ZT_TEST_COPY_KILLS", "20"))
SEED = seed_of("mirror copy")


def ordered(
    lab: Layout, topic: str, token: str = "", *, flow: Flow | None = None, accepted: Kind | None = None
) -> Order:
    source, target = (flow.source, flow.target) if flow else ("east", "west")
    past = frozenset() if accepted is None else frozenset({accepted})
    (order,) = orders(lab.bootstrap(source), lab.bootstrap(target), topic, 1, token or "a", flow=flow, accepted=past)
    return order


def is_copied(order: Order) -> bool:
    return copy_all(order).state == "copying"


def find_stopped(copier: PartitionCopier) -> Outcome | None:
    outcome = copier.work(0, 1.0)
    return outcome if outcome.state == "stopped" else None


def values(count: int, first: int = 0) -> list[bytes | None]:
    return [b"value %d" % number for number in range(first, first + count)]


@pytest.mark.servers
def test_key_value_headers_timestamp_and_order_are_kept(lab: Layout) -> None:
    make_topic(lab, "east", "kept")
    write(lab, "east", "kept", [*values(20), None, b""])
    assert copy_all(ordered(lab, "kept")).copied == 22
    assert read(lab, "west", "east.kept") == read(lab, "east", "kept")
    origins = [find_provenance(headers) for *_, headers in read(lab, "west", "east.kept", with_origin=True)]
    assert [(one.origin.cluster, one.origin.topic, one.offset) for one in origins if one] == [
        ("east", "kept", number) for number in range(22)
    ]


@pytest.mark.nightly
def test_what_a_transaction_took_back_at_the_source_is_not_copied(lab: Layout) -> None:
    make_topic(lab, "east", "aborted")
    client = Producer({"bootstrap.servers": lab.bootstrap("east"), "transactional.id": "aborted"})
    client.init_transactions(30)
    for committed in (True, False, True, False):
        client.begin_transaction()
        client.produce("aborted", b"yes" if committed else b"no", partition=0)
        client.flush(10)
        client.commit_transaction(10) if committed else client.abort_transaction(10)
    assert copy_all(ordered(lab, "aborted")).copied == 2
    assert [value for _, value, *_ in read(lab, "west", "east.aborted")] == [b"yes", b"yes"]
    # The markers at the end were read, too: a second look has nothing left to do.
    again = copy_all(ordered(lab, "aborted", "b"))
    assert (again.copied, again.next_offset) == (0, end_offset(lab, "east", "aborted"))


@pytest.mark.servers
def test_a_new_start_goes_on_behind_the_end_and_fences_the_one_before(lab: Layout) -> None:
    make_topic(lab, "east", "fenced")
    write(lab, "east", "fenced", values(10))
    older = PartitionCopier(ordered(lab, "fenced"))
    assert older.work(10, 5.0).copied == 10
    write(lab, "east", "fenced", values(10, 10))
    newer = PartitionCopier(ordered(lab, "fenced", "b"))
    assert newer.work(20, 5.0).copied == 10
    write(lab, "east", "fenced", values(10, 20))
    said = older.work(30, 5.0)
    assert (said.state, said.copied) == ("fenced", 0)
    assert "a newer start" in said.note
    assert newer.work(30, 5.0).copied == 10
    assert read(lab, "west", "east.fenced") == read(lab, "east", "fenced")
    older.close()
    newer.close()


@pytest.mark.nightly
def test_two_workers_of_one_start_take_turns(lab: Layout) -> None:
    make_topic(lab, "east", "turns")
    order = ordered(lab, "turns")
    workers = [PartitionCopier(order), PartitionCopier(order)]
    for turn in range(4):
        write(lab, "east", "turns", values(5, 5 * turn))
        assert workers[turn % 2].work(5 * turn + 5, 5.0).copied == 5
    assert read(lab, "west", "east.turns") == read(lab, "east", "turns")
    for worker in workers:
        worker.close()


@pytest.mark.servers
def test_a_place_that_is_gone_or_was_set_back_doubles_nothing(lab: Layout) -> None:
    make_topic(lab, "east", "places")
    write(lab, "east", "places", values(30))
    first = ordered(lab, "places")
    assert copy_all(first).copied == 30
    Places(Cluster(lab.bootstrap("west")), "west").commit(
        place_group(first.flow), {(TopicName("east.places"), PartitionNumber(0)): Offset(3)}
    )
    write(lab, "east", "places", values(5, 30))
    assert copy_all(ordered(lab, "places", "b")).copied == 5
    assert read(lab, "west", "east.places") == read(lab, "east", "places")


@pytest.mark.servers
def test_a_target_that_lost_its_records_gets_them_again(lab: Layout) -> None:
    make_topic(lab, "east", "lost")
    write(lab, "east", "lost", values(10))
    copy_all(ordered(lab, "lost"))
    delete_topic(lab, "west", "east.lost")
    assert copy_all(ordered(lab, "lost", "b")).copied == 10
    assert read(lab, "west", "east.lost") == read(lab, "east", "lost")


@pytest.mark.servers
def test_a_source_that_was_made_again_stops_until_that_is_accepted(lab: Layout) -> None:
    make_topic(lab, "east", "again")
    write(lab, "east", "again", values(10))
    copy_all(ordered(lab, "again"))
    delete_topic(lab, "east", "again")
    make_topic(lab, "east", "again")
    write(lab, "east", "again", values(4, 100))
    stopped = copy_all(ordered(lab, "again", "b"))
    assert (stopped.state, stopped.kind, stopped.copied) == ("stopped", "recreated", 0)
    assert copy_all(ordered(lab, "again", "c", accepted=Kind.RECREATED)).copied == 4
    assert copy_all(ordered(lab, "again", "d")).copied == 0
    assert [value for _, value, *_ in read(lab, "west", "east.again")] == [*values(10), *values(4, 100)]


@pytest.mark.nightly
def test_a_source_that_was_cut_stops_until_that_is_accepted(lab: Layout) -> None:
    make_topic(lab, "east", "cut")
    write(lab, "east", "cut", values(20))
    running = PartitionCopier(ordered(lab, "cut"))
    assert running.work(20, 5.0).copied == 20
    assert kill_target(lab, "east.kafka").bit
    # Power was lost, too: what had not been flushed is gone, and new records take the old offsets.
    assert cut_unflushed_tail(lab.folder_of("east.kafka.1") / "data", ["cut"]).records == 20
    start_target(lab, "east.kafka")
    write(lab, "east", "cut", values(5, 100))
    stopped = wait_until("it is seen", lambda: find_stopped(running), Deadline.after(60))
    assert (stopped.kind, stopped.copied) == ("truncated", 0)
    assert "the source ends at 5, and was copied up to 20" in stopped.note
    assert copy_all(ordered(lab, "cut", "b")).kind == "truncated"
    accepted = copy_all(ordered(lab, "cut", "c", accepted=Kind.TRUNCATED))
    assert (accepted.copied, "up to 4 is taken for copied" in accepted.note) == (0, True)
    write(lab, "east", "cut", values(3, 200))
    assert copy_all(ordered(lab, "cut", "d")).copied == 3
    assert [value for _, value, *_ in read(lab, "west", "east.cut")] == [*values(20), *values(3, 200)]


@pytest.mark.nightly
def test_what_retention_took_before_it_was_copied_is_counted_and_never_skipped_silently(lab: Layout) -> None:
    make_topic(lab, "east", "expired")
    write(lab, "east", "expired", values(10))
    copy_all(ordered(lab, "expired"))
    write(lab, "east", "expired", values(10, 10))
    client = AdminClient({"bootstrap.servers": lab.bootstrap("east")})
    for answer in client.delete_records([TopicPartition("expired", 0, 15)]).values():
        answer.result()
    stopped = copy_all(ordered(lab, "expired", "b"))
    assert (stopped.state, stopped.kind) == ("stopped", "expired")
    assert "5 offsets were deleted before they were copied" in stopped.note
    assert copy_all(ordered(lab, "expired", "c", accepted=Kind.EXPIRED)).copied == 5


@pytest.mark.nightly
def test_both_ways_nothing_runs_in_a_circle(lab: Layout) -> None:
    ways = [flow_of(*ends, topology="active-active", names="identity") for ends in (("east", "west"), ("west", "east"))]
    for site in ("east", "west"):
        make_topic(lab, site, "both")
        write(lab, site, "both", [f"{site} {number}".encode() for number in range(5)])
    counts = [
        (outcome.copied, outcome.left_out)
        for turn in range(3)
        for way in ways
        for outcome in [copy_all(ordered(lab, "both", str(turn), flow=way))]
    ]
    assert counts == [(5, 0), (5, 5), (0, 5), (0, 0), (0, 0), (0, 0)]
    for site in ("east", "west"):
        assert sorted(value or b"" for _, value, *_ in read(lab, site, "both")) == sorted(
            f"{origin} {number}".encode() for origin in ("east", "west") for number in range(5)
        )


@pytest.mark.servers
def test_a_record_whose_origin_cannot_be_read_stops_its_partition(lab: Layout) -> None:
    make_topic(lab, "east", "strange")
    write(lab, "east", "strange", values(2))
    client = Producer({"bootstrap.servers": lab.bootstrap("east")})
    client.produce("strange", b"x", partition=0, headers=[("zt-from", b"of another version")])
    client.flush(10)
    stopped = copy_all(ordered(lab, "strange"))
    assert stopped.state == "stopped"
    assert "cannot read" in stopped.note
    assert read(lab, "west", "east.strange") == []


@pytest.mark.nightly
def test_a_group_goes_on_at_the_record_that_it_had_not_read(lab: Layout) -> None:
    make_topic(lab, "east", "groups")
    flow = flow_of()
    here, there = (Cluster(lab.bootstrap(site)) for site in ("east", "west"))
    for turn in range(6):  # several transactions: their markers take offsets at the target
        write(lab, "east", "groups", values(5, 5 * turn))
        copy_all(ordered(lab, "groups", str(turn)))
    assert end_offset(lab, "west", "east.groups") > end_offset(lab, "east", "groups")
    place = (TopicName("groups"), PartitionNumber(0))
    for position in (0, 7, 25, 30):
        Places(here, "east").commit("billing", {place: Offset(position)})
        (found,) = translate_group(flow, here, there, "billing", shared=False)
        assert found.exact
        apply_positions(flow, there, "billing", (found,))
        left = [value for _, value, *_ in read(lab, "west", "east.groups", start=found.target_position)]
        assert left == values(30)[position:]


@pytest.mark.nightly
def test_nothing_is_lost_or_doubled_while_the_copier_is_killed_again_and_again(lab: Layout, tmp_path: Path) -> None:
    """Kill -9 in the middle of transactions, and brokers of both sides; each start fences and goes on."""
    chance = random.Random(SEED)
    make_topic(lab, "east", "killed", 2)
    program = [sys.executable, str(Path(__file__).parents[2] / "support" / "copier_process.py")]
    paths = os.pathsep.join(sys.path)
    written = 0
    hit = 0
    for kill in range(KILLS):
        for partition in range(2):
            write(lab, "east", "killed", values(200, written), partition)
        written += 200
        places = [lab.bootstrap("east"), lab.bootstrap("west"), "killed", "2", f"{kill:04d}"]
        with subprocess.Popen(
            [*program, *places], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
        ) as copier:
            assert copier.stdout is not None
            assert copier.stdout.readline() == b"copying\n"
            time.sleep(chance.uniform(0.0, 0.5))  # the moment of the blow, not a wait for anything
            if kill % 10 == 9:
                site = chance.choice(["east", "west"])
                hit += kill_target(lab, f"{site}.kafka").bit
                start_target(lab, f"{site}.kafka")
            copier.send_signal(signal.SIGKILL)
            copier.wait(10)
    assert hit == KILLS // 10
    for order in orders(lab.bootstrap("east"), lab.bootstrap("west"), "killed", 2, "last"):
        wait_until("everything is copied", partial(is_copied, order), Deadline.after(60))
        copied = [value for _, value, *_ in read(lab, "west", "east.killed", order.partition)]
        assert copied == values(written)
