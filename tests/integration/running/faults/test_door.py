"""A row of which no record can be made stops its producer in its partition, and nobody else, until it is decided."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from support.command import call
from support.running import Running

SECONDS = 5.0
"""Within which a row that stops its producer is listed."""
COUNT, WAIT = 200, 1.0
"""So many rows of each other producer and partition, and so much longer may they take on a busy machine."""


@pytest.mark.servers
def test_a_row_that_no_record_can_be_made_of_stops_its_producer_and_partition_only(
    system: Running, tmp_path: Path
) -> None:
    refused = system.insert_value("cards", 0, json.dumps({"account": "a", "amount": 1, "why": "no record"}).encode())
    one = _listed(system, refused)
    assert _seconds_until_listed(system, refused) < SECONDS
    assert (one["producer_name"], one["partition"], one["at_door"]) == (f"cards-{system.name}", 0, True)
    assert "the transform cannot take it: ValueError: no record can be made of this" in one["reason"]

    before = _vectors(system)
    system.insert(300)
    system.wait("all others go on", lambda: _others_took(system, before, 300), 20)
    assert _vectors(system)["cards", 0] == before["cards", 0] == refused - 1
    said = call("status", "--config", str(system.config), "--site", "east").out.splitlines()[0]
    assert said.startswith("NOT READY")
    assert f"producer cards-{system.name} stands at serial {refused} of partition 0" in said

    # What Kafka cannot take, behind it; then each is decided in another way.
    huge = system.insert_value("cards", 0, json.dumps({"account": "huge", "amount": 1}).encode())
    assert _decide(system, "retry", one) == 0
    system.wait("it was tried again", lambda: _listed(system, refused)["attempts"] == 2, 20)
    assert _decide(system, "skip", one) == 0
    system.skipped += 1
    other = _listed(system, huge)
    assert "Kafka does not take" in other["reason"]
    repaired = tmp_path / "repaired.json"
    repaired.write_text(json.dumps({"account": "a", "amount": 7}))
    assert _decide(system, "replace", other, "--value", str(repaired)) == 0
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert call("poison", "list", "--config", str(system.config), "--site", "east").code == 0


@pytest.mark.servers
def test_what_was_decided_at_the_door_is_read_back_alike_whatever_the_transform_takes_by_then(
    system: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    serial = system.insert_value("wires", 1, json.dumps({"account": "b", "amount": 1, "why": "no record"}).encode())
    assert _decide(system, "skip", _listed(system, serial)) == 0
    system.skipped += 1
    system.wait_until_all_arrived()
    monkeypatch.syspath_prepend(system.folder)
    stage = ("--config", str(system.config), "--site", "east", "--stage", system.stage_name)
    assert call("journal", "verify", *stage).code == 0
    code = system.folder / f"flows_{system.name}.py"
    repaired = code.read_text().replace('raise ValueError("no record can be made of this")', 'return b"{}"')
    whole = code.read_text()
    code.write_text(repaired)
    try:
        assert call("journal", "verify", *stage).code == 0
    finally:
        code.write_text(whole)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        pytest.param(
            "hangs", "TransformTimeoutError: the transform was at this row for more than 1 s", marks=pytest.mark.servers
        ),
        pytest.param(
            "exits", "the process of its transform dies of it, 2 times out of 2: exit code 3", marks=pytest.mark.servers
        ),
        pytest.param("leaves", "the transform cannot take it: SystemExit: 3", marks=pytest.mark.nightly),
        pytest.param(
            "is killed",
            "the process of its transform dies of it, 2 times out of 2: signal SIGKILL",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "is deaf",
            "the process of its transform dies of it, 2 times out of 2: exit code 1",
            marks=pytest.mark.nightly,
        ),
        pytest.param("is stubborn", "TransformTimeoutError", marks=pytest.mark.nightly),
    ],
)
def test_a_row_that_its_transform_does_not_survive_stops_its_producer_and_partition_only(
    system: Running, harm: str, reason: str
) -> None:
    usual = _seconds_for_others(system)
    before = _vectors(system)
    row = {"account": "a", "amount": 1, "why": f"the door {harm}"}
    serial = system.insert_value("cards", 0, json.dumps(row).encode())
    meanwhile = _seconds_for_others(system)
    one = _listed(system, serial)
    assert reason in one["reason"]
    assert _seconds_until_listed(system, serial) < SECONDS + 3 * usual
    assert meanwhile < 3 * (usual + WAIT), (usual, meanwhile)
    assert _vectors(system)["cards", 0] == before["cards", 0] == serial - 1
    afterwards = _seconds_for_others(system)
    assert afterwards < 3 * usual + WAIT, (usual, afterwards)
    assert _decide(system, "skip", one) == 0
    system.skipped += 1
    system.wait_until_all_arrived()
    system.require_exactly_once()


@pytest.mark.nightly
def test_a_row_at_which_its_transform_only_takes_its_time_is_sent(system: Running) -> None:
    value = json.dumps({"account": "a", "amount": 1, "why": "the door takes its time"}).encode()
    system.insert_value("cards", 0, value)
    system.insert(100)
    system.wait_until_all_arrived()
    system.require_exactly_once()


def _seconds_for_others(system: Running) -> float:
    """Within which all others take so many rows."""
    before, began = _vectors(system), time.monotonic()
    system.insert(COUNT)
    system.wait("all others go on", lambda: _others_took(system, before, COUNT), 20)
    return time.monotonic() - began


def _listed(system: Running, serial: int) -> dict[str, Any]:
    """The row at which a producer stands, as `poison list` shows it."""

    def found() -> list[dict[str, Any]]:
        said = call("poison", "list", "--config", str(system.config), "--site", "east", "--json")
        records: list[dict[str, Any]] = said.answer("poison-list")["records"]
        return [one for one in records if one["serial"] == serial and not one["decision"]]

    system.wait(f"it stands at serial {serial}", lambda: bool(found()), 20)
    return found()[0]


def _seconds_until_listed(system: Running, serial: int) -> float:
    """By the clock of the database; a command takes seconds to start on a busy machine."""
    query = (
        "select extract(epoch from found_at - submitted_at)::float8 from zerotail.poison "
        "join zerotail.instruction using (producer, partition, serial) where stage = %s and serial = %s"
    )
    return float(system.sql(query, system.stage_name, serial)[0][0])


def _decide(system: Running, word: str, one: dict[str, Any], *more: str) -> int:
    record = (system.stage_name, str(one["partition"]), one["producer_name"], str(one["serial"]))
    where = ("--digest", one["digest"], "--by", "anna", "--config", str(system.config), "--site", "east")
    return call("poison", word, *record, *where, *more).code


def _vectors(system: Running) -> dict[tuple[str, int], int]:
    rows = system.sql(
        "select producer.name, partition, coalesce((vector ->> producer::text)::bigint, 0) "
        "from zerotail.producer join zerotail.head on stage = consumer where stage = %s",
        system.stage_name,
    )
    return {(name.removesuffix(f"-{system.name}"), partition): int(serial) for name, partition, serial in rows}


def _others_took(system: Running, before: dict[tuple[str, int], int], count: int) -> bool:
    now = _vectors(system)
    places = [(producer, partition) for producer in system.producers for partition in range(system.partitions)]
    return all(now[place] >= before[place] + count for place in places if place != ("cards", 0))
