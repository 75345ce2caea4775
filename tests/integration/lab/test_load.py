"""A load inserts what the lab's configuration names, densely where serials are given, and always says how much."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support.command import PROGRAM, call
from zerotail.config import Configuration, load, load_values
from zerotail.core.identity import PartitionNumber, StageName
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Refused, Unavailable
from zerotail.lab.database import dsn
from zerotail.lab.example import plan_configuration
from zerotail.lab.fault import continue_target, kill_target, start_target, stop_target
from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.load import Load, Loaded, LoadSettings, find_database
from zerotail.lab.payments import partition_of
from zerotail.postgres.bulk import cancel
from zerotail.postgres.connection import Connection, connect, one_row
from zerotail.postgres.journal import create_head

pytestmark = pytest.mark.servers
PATIENCE_SECONDS = 60.0
CARDS, WIRES = 9001, 9002
COMMITS_THAT_WAIT = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"


@pytest.fixture
def ready(lab: Layout) -> Layout:
    """The lab with the example's producers registered."""
    with connect(dsn(lab.database("east")), Deadline.after(10)) as primary:
        for number, name in ((CARDS, "cards"), (WIRES, "wires")):
            primary.execute(
                "insert into zerotail.producer (producer, name, topic, consumer) "
                "values (%s, %s, 'payments', 'settle') on conflict do nothing",
                (number, name),
            )
        for partition in range(2):
            create_head(primary, StageName("settle"), PartitionNumber(partition), ())
    return lab


def rows(lab: Layout, table: str) -> list[tuple[Any, ...]]:
    """What the table holds of our producers, in the order of insertion as far as there is one."""
    serial = "serial" if table == "instruction" else "0"
    query = (
        f"select producer, partition, {serial}, id, value from zerotail.{table} "
        "where producer in (%s, %s) order by producer, partition, 3"
    )
    with connect(dsn(lab.database("east")), Deadline.after(10)) as primary:
        return primary.execute(query.encode(), (CARDS, WIRES)).fetchall()


def everything(lab: Layout) -> int:
    return len(rows(lab, "instruction")) + len(rows(lab, "submission"))


def loaded(lab: Layout, settings: LoadSettings) -> Loaded:
    configuration = load(lab.path / "zerotail.yaml")
    return Load(configuration, find_database(configuration), settings, Deadline.after(5)).run()


def test_each_producer_gets_its_share_where_it_takes_instructions(ready: Layout) -> None:
    before = {table: len(rows(ready, table)) for table in ("instruction", "submission")}
    report = loaded(ready, LoadSettings(5000, accounts=50))
    assert report.site == "east"
    assert report.inserted == 5000 == sum(report.by_producer.values())
    wires, cards = rows(ready, "instruction"), rows(ready, "submission")
    assert len(wires) - before["instruction"] == report.by_producer["wires"] > 2000
    assert len(cards) - before["submission"] == report.by_producer["cards"] > 2000
    assert {row[0] for row in wires} == {WIRES}
    assert {row[0] for row in cards} == {CARDS}
    for _, partition, _, name, value in [*wires, *cards]:
        payment = json.loads(value)
        assert payment.keys() == {"id", "account", "amount"}
        assert payment["id"] == name
        assert partition_of(payment["account"], 2) == partition


@pytest.mark.parametrize("writers", [1, 3, 8])
def test_given_serials_stay_dense_over_several_loads_and_any_number_of_writers(ready: Layout, writers: int) -> None:
    for seed in (1, 2):
        loaded(ready, LoadSettings(3000, writers=writers, accounts=100, seed=seed))
    serials: dict[int, list[int]] = {0: [], 1: []}
    for _, partition, serial, _, _ in rows(ready, "instruction"):
        serials[partition].append(serial)
    for found in serials.values():
        assert found == list(range(1, len(found) + 1))
        assert len(found) > 1000


def test_given_serials_are_dense_at_every_moment_of_a_load(ready: Layout) -> None:
    configuration = load(ready.path / "zerotail.yaml")
    work = Load(configuration, find_database(configuration), LoadSettings(40_000, rate=20_000), Deadline.after(5))
    thread = Thread(target=work.run)
    thread.start()
    looks = 0
    query = "select count(*) - max(serial) from zerotail.instruction where producer = %s group by partition"
    with connect(dsn(ready.database("east")), Deadline.after(10)) as primary:
        while thread.is_alive():
            assert all(missing == 0 for (missing,) in primary.execute(query.encode(), (WIRES,)))
            looks += 1
    assert looks > 5
    assert work.inserted == 40_000


def test_a_few_accounts_are_busy_and_a_stamp_is_there_when_it_was_asked_for(ready: Layout) -> None:
    loaded(ready, LoadSettings(4000, accounts=1000, seed=9, stamped=True))
    stamped = [value for *_, raw in rows(ready, "instruction") if "at" in (value := json.loads(raw))]
    assert all(1.7e15 < payment["at"] < 1e17 for payment in stamped)
    often = Counter(payment["account"] for payment in stamped).most_common()
    assert often[0][1] > 5 * often[len(often) // 2][1]


def test_the_rate_is_kept_and_the_answer_has_its_form(ready: Layout) -> None:
    before = everything(ready)
    said = call("lab", "load", "--dir", ready.folder, "--rate", "400", "--count", "500", "--json")
    assert said.code == 0, said.err
    answer = said.answer("lab-load")
    assert answer["inserted"] == 500 == everything(ready) - before
    assert answer["seconds"] >= 480 / 400, "the last step is not due before"
    assert re.search(r"^lab load: \d+ of 500$", said.err, re.MULTILINE)
    people = call("lab", "load", "--dir", ready.folder, "--rate", "0", "--count", "50")
    assert people.out.startswith("50 instructions inserted at east in ")


def test_producers_that_were_never_run_are_named(ready: Layout) -> None:
    values = plan_configuration(ready, LabSettings(ready.path, example="two-stages"), None)
    configuration: Configuration = load_values(values, ready.path)
    with pytest.raises(Unavailable, match=r"not registered in the database of east: fees\.") as late:
        Load(configuration, find_database(configuration), LoadSettings(10), Deadline.after(0.3))
    assert late.value.code == "ZT222"


def test_a_configuration_without_producers_of_ours_is_refused(ready: Layout) -> None:
    values = plan_configuration(ready, LabSettings(ready.path), None)
    for name in ("cards", "wires"):
        values["producers"][name]["table"] = "payments"
    configuration = load_values(values, ready.path)
    with pytest.raises(Refused, match="names no producer") as refused:
        Load(configuration, find_database(configuration), LoadSettings(10), Deadline.after(0.3))
    assert refused.value.code == "ZT225"


def test_without_a_primary_nothing_is_inserted(ready: Layout) -> None:
    kill_target(ready, "east.postgres")
    said = call("lab", "load", "--dir", ready.folder, "--count", "10", "--json")
    assert said.code == 4
    assert said.answer("error")["code"] == "ZT221"
    assert "east did not answer" in said.answer("error")["message"]


def test_a_folder_without_a_lab_is_refused(tmp_path: Path) -> None:
    assert call("lab", "load", "--dir", str(tmp_path)).code == 3


@contextmanager
def loading(lab: Layout, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A load as a process, which ends with the block at the latest."""
    command = [*PROGRAM, "lab", "load", "--dir", lab.folder, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until_it_inserts(lab: Layout, before: int) -> None:
    wait_until("instructions arrive", lambda: everything(lab) > before, Deadline.after(PATIENCE_SECONDS))


def told(said: str) -> int:
    """How many instructions the message says were inserted."""
    found = re.search(r"(\d+) of 100000 instructions were inserted", said)
    assert found, said
    return int(found.group(1))


def test_an_interrupted_load_says_exactly_what_it_inserted(ready: Layout) -> None:
    before = everything(ready)
    with loading(ready, "--rate", "2000", "--count", "100000") as process:
        wait_until_it_inserts(ready, before)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, err
    assert out == ""
    assert told(err) == everything(ready) - before > 0


def test_an_interrupted_load_does_not_wait_for_a_site_that_is_silent(ready: Layout) -> None:
    before = everything(ready)
    stop_target(ready, "west.postgres")
    with loading(ready, "--rate", "2000", "--count", "100000") as process:
        with connect(dsn(ready.database("east")), Deadline.after(10)) as primary:
            deadline = Deadline.after(PATIENCE_SECONDS)
            wait_until("commits wait", lambda: one_row(primary, COMMITS_THAT_WAIT)[0] >= 2, deadline)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    continue_target(ready, "west.postgres")
    assert process.returncode == 130, err
    assert told(err) == everything(ready) - before


def test_a_writer_that_did_not_hear_that_it_shall_give_up_is_told_again(
    ready: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_to: Counter[Connection] = Counter()

    def deaf_at_first(connection: Connection) -> None:
        told_to[connection] += 1
        if told_to[connection] > 1:
            cancel(connection)

    monkeypatch.setattr("zerotail.lab.load.cancel", deaf_at_first)
    configuration = load(ready.path / "zerotail.yaml")
    work = Load(configuration, find_database(configuration), LoadSettings(1000, rate=2000), Deadline.after(5))
    before = everything(ready)
    stop_target(ready, "west.postgres")
    with connect(dsn(ready.database("east")), Deadline.after(10)) as primary:

        def interrupt_once_commits_wait(_inserted: int) -> None:
            if one_row(primary, COMMITS_THAT_WAIT)[0] >= 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            work.run(interrupt_once_commits_wait)
    continue_target(ready, "west.postgres")
    assert len(told_to) == 4
    assert work.unanswered == 0
    assert work.inserted == everything(ready) - before == 100


def test_a_lost_database_ends_the_load_with_what_it_had_inserted(ready: Layout) -> None:
    before = everything(ready)
    with loading(ready, "--rate", "2000", "--count", "100000", "--json") as process:
        wait_until_it_inserts(ready, before)
        kill_target(ready, "east.postgres")
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    start_target(ready, "east.postgres")
    assert process.returncode == 5, err
    answer = json.loads(out)
    assert answer["code"] == "ZT223"
    assert "was lost" in answer["message"]
    # Whatever a COMMIT had returned for is there; what was on its way may be there as well.
    assert 0 < told(answer["message"]) <= everything(ready) - before


def test_one_load_at_a_time_counts_serials(ready: Layout) -> None:
    first_configuration = load(ready.path / "zerotail.yaml")
    database = find_database(first_configuration)
    first = Load(first_configuration, database, LoadSettings(2000, rate=2000), Deadline.after(5))
    thread = Thread(target=first.run)
    thread.start()
    wait_until("the first load inserts", lambda: first.inserted, Deadline.after(10))
    with pytest.raises(Refused, match="another load is at work") as refused:
        loaded(ready, LoadSettings(10))
    thread.join(PATIENCE_SECONDS)
    assert refused.value.code == "ZT224"
    assert first.inserted == 2000
    assert loaded(ready, LoadSettings(10)).inserted == 10


@pytest.mark.parametrize("seen_from", ["", "east", "west"])
def test_the_addresses_in_the_configuration_are_those_of_this_lab(lab: Layout, seen_from: str) -> None:
    configuration = load(lab.path / seen_from / "zerotail.yaml")
    roles = []
    for site in configuration.sites.values():
        with connect(site.database.dsn.reveal(), Deadline.after(10)) as connection:
            roles.append(one_row(connection, "select current_setting('cluster_name')")[0])
    assert roles == ["east.postgres", "west.postgres"]
    assert call("config", "check", "--config", str(lab.path / seen_from / "zerotail.yaml")).code == 0
