"""The normal day on Spark, run as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.running import Running, descendants, is_alive, running_system
from zerotail.lab.layout import Layout


@pytest.mark.servers
def test_instructions_pass_through_spark_once_and_in_order(lab: Layout, tmp_path: Path) -> None:
    with running_system(lab, tmp_path, "spark", partitions=2) as system:
        process = system.start("all")
        system.wait_for_line("running stage")
        system.insert(2000)
        system.wait_until_all_arrived()
        system.insert(500)
        system.wait_until_all_arrived()
        system.require_exactly_once()
        children = descendants(process.pid)
        process.terminate()
        assert process.wait(60) == 0
        assert len(children) >= 3, "the driver, its Java, the emitter"
        system.wait("nothing is left", lambda: not any(is_alive(pid) for pid in children), 20)


@pytest.mark.nightly
def test_the_older_of_two_instances_ends_by_itself(lab: Layout, tmp_path: Path) -> None:
    with running_system(lab, tmp_path, "twice") as system:
        older = system.start("flow")
        emitter = system.start("emitter")
        system.wait_for_line("running stage")
        system.insert(300)
        system.wait_until_all_arrived()
        system.start("flow", "--take-over")
        system.insert(300)
        assert older.wait(120) == 6
        newer_emitter = system.start("emitter", "--take-over")
        assert emitter.wait(60) == 6
        system.insert(300)
        system.wait_until_all_arrived()
        system.require_exactly_once()
        assert newer_emitter.poll() is None


@pytest.mark.nightly
def test_producers_and_partitions_are_added_while_a_stage_runs(lab: Layout, tmp_path: Path) -> None:
    with running_system(lab, tmp_path, "added", producers=("cards",)) as system:
        system.start("all")
        system.wait_for_line("running stage")
        system.insert(200)
        system.wait_until_all_arrived()
        # A colleague starts a new producer from a configuration that has it, and one more partition.
        system.producers, system.partitions = ("cards", "wires"), 2
        system.write()
        system.start("producer", f"wires-{system.name}")
        system.wait("the producer is registered", lambda: _registered(system, "wires"))
        system.insert(200)
        system.wait_until_all_arrived()
        system.require_exactly_once()
        assert len(system.totals()) == 2


@pytest.mark.nightly
def test_a_new_handler_version_begins_at_a_segment_boundary(lab: Layout, tmp_path: Path) -> None:
    with running_system(lab, tmp_path, "version") as system:
        first = system.start("all")
        system.wait_for_line("running stage")
        system.insert(300)
        system.wait_until_all_arrived()
        first.terminate()
        assert first.wait(60) == 0
        system.write(version="2")
        system.start("all")
        system.wait("the new one runs", lambda: system.log.read_text().count("running stage") == 2)
        system.insert(300)
        system.wait_until_all_arrived()
        system.require_exactly_once()
        versions = system.sql(
            "select version, sum((select sum(n) from unnest(counts) as n))::int from zerotail.segment where stage = %s "
            "group by version order by version",
            f"settle-{system.name}",
        )
        assert versions == [("1", 600), ("2", 600)]


@pytest.mark.servers
def test_a_site_that_is_not_active_runs_nothing(lab: Layout, tmp_path: Path) -> None:
    with running_system(lab, tmp_path, "passive") as system:
        content = system.content()
        east, west = (content["sites"][site]["database"]["dsn"] for site in ("east", "west"))
        content["sites"]["east"]["database"]["dsn"], content["sites"]["west"]["database"]["dsn"] = west, east
        system.config.write_text(json.dumps(content))
        assert system.start("flow").wait(60) == 7
        assert "is not the active one" in system.log.read_text()


def _registered(system: Running, producer: str) -> bool:
    rows = system.sql("select count(*) from zerotail.producer where name = %s", f"{producer}-{system.name}")
    return bool(rows[0][0])
