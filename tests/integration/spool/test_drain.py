"""Entries of a spool become instructions of a real database, behind a real gate, once."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command import call
from support.running import Running
from support.seeds import seed_of
from support.tracing import CHANGING_CALLS, FILE_CALLS, NETWORK_CALLS, SpoolProcess
from zerotail import Spool, Submitter
from zerotail.core.identity import PartitionNumber
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Misused
from zerotail.lab.fault import continue_target, stop_target
from zerotail.postgres.connection import session
from zerotail.postgres.feed import number_submissions
from zerotail.postgres.registration import find_numbers
from zerotail.spool.status import observe_spool

SEED = seed_of("spool")
PRODUCER = "cards-spooled"
_starts = itertools.count(1)


@pytest.fixture
def start() -> str:
    """What the names of this test begin with: the table is shared, and its rows stay."""
    return f"{next(_starts)}-{os.getpid()}-"


def rows(system: Running, start: str) -> list[tuple[int, int, str, bytes]]:
    """The instructions whose names begin so, by partition and serial."""
    return system.sql(
        "select partition, serial, id, value from zerotail.instruction join zerotail.producer using (producer) "
        "where name = %s and starts_with(id, %s) order by partition, serial",
        PRODUCER,
        start,
    )


def require_dense(system: Running) -> None:
    """No serial of the producer was used up for nothing."""
    counted = system.sql(
        "select partition, max(serial) - count(*) from zerotail.instruction join zerotail.producer using (producer) "
        "where name = %s group by partition",
        PRODUCER,
    )
    assert all(missing == 0 for _, missing in counted), counted


def filled(folder: Path, start: str, count: int) -> list[str]:
    ids = [f"{start}{number:06d}" for number in range(count)]
    with Spool(folder, PRODUCER) as spool:
        spool.put_many((identifier, {"id": identifier}, number % 2) for number, identifier in enumerate(ids))
    return ids


def drain(system: Running, folder: Path, *options: str) -> dict[str, object]:
    said = call("spool", "drain", str(folder), "--config", str(system.config), "--json", *options)
    assert said.code == 0, said.out
    return said.answer("spool-drain")


@pytest.mark.servers
def test_entries_become_instructions_in_their_order_and_a_repeat_is_harmless_also_after_they_were_numbered(
    system: Running, tmp_path: Path, start: str
) -> None:
    folder = tmp_path / "queue"
    ids = filled(folder, start, 5000)
    shutil.copytree(folder, tmp_path / "copy")
    assert drain(system, folder)["entries"] == 5000
    stored = rows(system, start)
    assert [name for partition, _, name, _ in stored if partition == 0] == ids[::2]
    assert [name for partition, _, name, _ in stored if partition == 1] == ids[1::2]
    again = drain(system, tmp_path / "copy")
    assert (again["entries"], again["known"]) == (5000, 5000)
    assert rows(system, start) == stored
    require_dense(system)
    assert drain(system, folder)["entries"] == 0


@pytest.mark.servers
def test_whoever_else_submits_under_the_same_name_makes_no_second_instruction(
    system: Running, tmp_path: Path, start: str
) -> None:
    folder = tmp_path / "queue"
    first, second, third = filled(folder, start, 3)
    with Submitter(system.config, "east") as business:
        business.submit(PRODUCER, first, {"id": first}, partition=0)
    with session(system.database, Deadline.after(30)) as primary:
        number = find_numbers(primary, [PRODUCER])[PRODUCER]
        waiting = "insert into zerotail.submission (producer, partition, id, value) values (%s, %s, %s, %s)"
        primary.execute(waiting, (number, 1, second, b'{"id":"%s"}' % second.encode()))
        assert drain(system, folder)["known"] == 1
        # What waits without a serial is looked at later, and found.
        with primary.transaction():
            assert number_submissions(primary, number, PartitionNumber(1), 100) == 0
        primary.execute(waiting, (number, 0, third, b'{"id":"%s"}' % third.encode()))
        with primary.transaction():
            assert number_submissions(primary, number, PartitionNumber(0), 100) == 0
    assert sorted(name for _, _, name, _ in rows(system, start)) == [first, second, third]
    require_dense(system)


@pytest.mark.servers
def test_a_name_that_belongs_to_other_bytes_is_set_aside(system: Running, tmp_path: Path, start: str) -> None:
    folder = tmp_path / "queue"
    first, _, _ = filled(folder, start, 3)
    with Submitter(system.config, "east") as business:
        business.submit(PRODUCER, first, {"another": "instruction"}, partition=0)
    report = drain(system, folder)
    assert (report["entries"], report["known"], report["set_aside"]) == (3, 0, 1)
    assert [one.id for one in observe_spool(folder).set_aside] == [first]
    assert call("spool", "status", str(folder)).code == 1
    listed = call("submissions", "set-aside", "list", "--config", str(system.config), "--site", "east", "--json")
    assert first in [one["id"] for one in listed.answer("submissions-list")["rows"]]


@pytest.mark.servers
def test_a_partition_that_is_not_there_is_refused_by_who_puts(system: Running, tmp_path: Path) -> None:
    with (
        Spool(tmp_path / "queue", PRODUCER, config=system.config) as spool,
        pytest.raises(Misused, match="there is no partition 99: there are"),
    ):
        spool.put("p-1", {"account": "a"}, partition=99)


@contextmanager
def frozen(system: Running, target: str) -> Iterator[None]:
    assert stop_target(system.lab, target).bit
    try:
        yield
    finally:
        continue_target(system.lab, target)


@pytest.mark.servers
def test_entries_stay_until_the_other_site_has_them(system: Running, tmp_path: Path, start: str) -> None:
    folder = tmp_path / "queue"
    filled(folder, start, 10)
    with frozen(system, "west.postgres"):
        said = call("spool", "drain", str(folder), "--config", str(system.config), "--patience", "1", "--json")
        assert said.code == 5
        assert said.answer("error")["code"] == "ZT911"
        assert "has not confirmed" in said.answer("error")["message"]
        assert len(rows(system, start)) == 10, "they are stored here, and that is not enough"
        assert observe_spool(folder).waiting == 10
    assert drain(system, folder)["known"] == 10
    assert len(rows(system, start)) == 10


@pytest.mark.servers
def test_a_spool_that_is_open_drains_by_itself_and_goes_on_after_its_database_was_silent(
    system: Running, tmp_path: Path, start: str
) -> None:
    with Spool(tmp_path / "queue", PRODUCER, config=system.config) as spool:
        spool.put(f"{start}1", {"n": 1})
        wait_until("it is drained", lambda: spool.waiting == 0, Deadline.after(30))
        with frozen(system, "east.postgres"):
            for number in range(2, 50):
                spool.put(f"{start}{number}", {"n": number})
            wait_until("it says why it waits", lambda: "does not answer" in spool.drain_waits_for, Deadline.after(60))
            assert spool.waiting == 48
        wait_until("the rest is drained", lambda: spool.waiting == 0, Deadline.after(60))
        assert spool.drain_waits_for == ""
    assert len(rows(system, start)) == 49


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(CHANGING_CALLS, id="that changes something", marks=pytest.mark.servers),
        pytest.param(
            (*FILE_CALLS, *NETWORK_CALLS), id="of any kind", marks=[pytest.mark.nightly, pytest.mark.timeout(1800)]
        ),
    ],
)
def test_a_drain_that_is_killed_at_any_system_call_stores_every_entry_once(
    system: Running, spooling: SpoolProcess, start: str, calls: tuple[str, ...]
) -> None:
    met: dict[str, int] = {}
    for name in calls:
        for injected, number in spooling.kill_at_every(name):
            ids = filled(spooling.folder, f"{start}{name}-{number}-", 3)
            spooling.run("drain", [], injected)
            met[name] = number - 1
            known = {identifier for _, _, identifier, _ in rows(system, f"{start}{name}-{number}-")}
            left = observe_spool(spooling.folder).waiting
            assert known in (set(), set(ids)), f"{injected}: they go into one transaction"
            assert known or left >= 3, injected
        assert spooling.code == 0
        stored = [identifier for _, _, identifier, _ in rows(system, f"{start}{name}-")]
        assert sorted(stored) == sorted(f"{start}{name}-{n}-{p:06d}" for n in range(1, number + 1) for p in range(3))
        assert observe_spool(spooling.folder).waiting == 0
    require_dense(system)
    assert set(CHANGING_CALLS) <= {name for name, kills in met.items() if kills}, met


@pytest.mark.nightly
def test_what_is_put_into_a_queue_goes_through_the_whole_flow_to_the_outside(system: Running, start: str) -> None:
    try:
        system.start("all")
        with Spool(system.folder / "queue", PRODUCER, config=system.config) as spool:
            for number in range(300):
                spool.put(f"{start}{number}", {"account": f"a{number % 7}", "amount": number}, partition=number % 2)
            system.submitted += 300
            system.wait_until_all_arrived()
            system.require_exactly_once()
            assert spool.waiting == 0
    finally:
        system.end()
    said = call("spool", "status", "--producer", PRODUCER, "--config", str(system.config), "--json")
    assert said.answer("spool-status")["spool"]["waiting"] == 0


def wait_until_told(spooling: SpoolProcess, count: int) -> None:
    wait_until(f"{count} entries were put", lambda: len(spooling.told) >= count, Deadline.after(60))


def kill_again_and_again(system: Running, spooling: SpoolProcess, start: str, kills: int) -> None:
    chance = random.Random(SEED)
    for number in range(kills):
        pid = spooling.begin("serve", [f"{start}{number:03d}"])
        wait_until_told(spooling, len(spooling.told) + 1)
        time.sleep(chance.uniform(0.0, 0.1))  # the load goes on for a while; when it is killed is left to chance
        os.kill(pid, signal.SIGKILL)
        assert spooling.ended() == -9
    told_ids = spooling.told
    drain(system, spooling.folder)
    stored = [identifier for _, _, identifier, _ in rows(system, start)]
    assert len(told_ids) == len(set(told_ids)) > kills
    assert len(stored) == len(set(stored)), "something is there twice"
    assert set(told_ids) <= set(stored), "something that was acknowledged is lost"
    # What nobody was told of is at most what each thread had on its way when it was killed.
    assert len(stored) - len(told_ids) <= 4 * kills
    for thread in range(4):
        mine = [identifier for identifier in stored if identifier.split("/")[1] == str(thread)]
        assert mine == sorted(mine), "out of order"
    require_dense(system)


@pytest.mark.servers
def test_a_service_that_is_killed_under_load_loses_nothing_and_stores_nothing_twice(
    system: Running, spooling: SpoolProcess, start: str
) -> None:
    kill_again_and_again(system, spooling, start, 20)


@pytest.mark.nightly
def test_a_service_that_is_killed_a_hundred_times_under_load_loses_nothing_and_stores_nothing_twice(
    system: Running, spooling: SpoolProcess, start: str
) -> None:
    kill_again_and_again(system, spooling, start, 100)
