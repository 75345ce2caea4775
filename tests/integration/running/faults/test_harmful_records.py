"""A record at which a handler hangs, or of which its process dies, stops its partition; the other one goes on (E18)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from support.command import call
from support.kafka_faults import Kept, TopicAtSite
from support.running import Running
from zerotail.core.identity import Epoch, ProducerNumber, Serial
from zerotail.core.installation import Installation
from zerotail.core.record import HEADER_NAME, Header, digest_of, encode


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        pytest.param(
            "hangs",
            "HandlerTimeoutError: the handler was at this record for more than 2 s",
            marks=pytest.mark.servers,
        ),
        pytest.param("exits", "its process dies of it, 2 times out of 2: exit code 3", marks=pytest.mark.servers),
        pytest.param(
            "is killed", "its process dies of it, 2 times out of 2: signal SIGKILL", marks=pytest.mark.nightly
        ),
        pytest.param("is deaf", "its process dies of it, 2 times out of 2: exit code 1", marks=pytest.mark.nightly),
        pytest.param("is stubborn", "HandlerTimeoutError", marks=pytest.mark.nightly),
        pytest.param("leaves", "SystemExit: 3", marks=pytest.mark.nightly),
    ],
)
def test_a_harmful_record_stops_its_partition_and_the_other_one_goes_on(
    system: Running, harm: str, reason: str
) -> None:
    before = _position(system, 1)
    system.insert(20)
    serial = system.insert_value("cards", 0, json.dumps({"account": "a", "amount": 1, "harm": harm}).encode())
    began = time.monotonic()
    system.insert(300)
    system.wait("the other partition goes on", lambda: _position(system, 1) == before + 2 * 320)
    took = time.monotonic() - began
    one = _stopped_at(system, serial)
    assert reason in one["reason"]
    assert time.monotonic() - began < 60, took
    system.insert(50)
    system.wait("and on", lambda: _position(system, 1) == before + 2 * 370)
    assert system.words("stage")[0]["doing"] == "stopped"
    record = (system.stage_name, "0", one["producer_name"], str(serial), "--digest", one["digest"])
    where = ("--by", "anna", "--config", str(system.config), "--site", "east")
    assert call("poison", "skip", *record, *where).code == 0
    system.skipped += 1
    system.wait_until_all_arrived()
    system.require_exactly_once()


@pytest.mark.nightly
def test_a_record_that_only_takes_its_time_is_taken_and_holds_up_nobody(system: Running) -> None:
    before = _position(system, 1)
    system.insert_value("cards", 0, json.dumps({"account": "a", "amount": 1, "harm": "is slow"}).encode())
    system.insert(100)
    system.wait("the other partition goes on", lambda: _position(system, 1) == before + 2 * 100)
    system.wait_until_all_arrived()
    system.require_exactly_once()


def _stopped_at(system: Running, serial: int) -> dict[str, Any]:
    def found() -> list[dict[str, Any]]:
        said = call("poison", "list", "--config", str(system.config), "--site", "east", "--json")
        records: list[dict[str, Any]] = said.answer("poison-list")["records"]
        return [one for one in records if (one["stage"], one["serial"]) == (system.stage_name, serial)]

    system.wait(f"it stops at serial {serial}", lambda: bool(found()))
    (one,) = found()
    return one


def _position(system: Running, partition: int) -> int:
    query = "select next_position from zerotail.head where stage = %s and partition = %s"
    return int(system.sql(query, system.stage_name, partition)[0][0])


@pytest.mark.servers
def test_a_header_from_the_future_stops_its_partition_until_it_is_skipped(system: Running) -> None:
    (number,), (epoch,) = system.sql(
        "select producer from zerotail.producer where name = %s "
        "union all (select epoch from zerotail.epoch order by epoch desc limit 1)",
        f"cards-{system.name}",
    )
    before, serial = _position(system, 1), system.inserted.get(("cards", 0), 0) + 1
    mark = Installation(bytes(system.sql("select identity from zerotail.installation")[0][0])).mark
    header = encode(Header(Epoch(epoch + 512), ProducerNumber(number), Serial(serial), digest_of(b"{}"), mark))
    TopicAtSite(system.lab, system.topic, system.partitions).write([Kept(0, b"{}", [(HEADER_NAME, header)])])
    system.wait("its partition stops", lambda: system.words("stage")[0]["doing"] == "stopped")
    system.insert(100)
    system.wait("the other partition goes on", lambda: _position(system, 1) == before + 2 * 100)
    said = call("poison", "list", "--config", str(system.config), "--site", "east", "--json")
    (one,) = [one for one in said.answer("poison-list")["records"] if one["stage"] == system.stage_name]
    assert f"its epoch {epoch + 512} is newer than any that the database has opened" in one["reason"]
    assert f"serial {serial} of producer {number}" in one["reason"]
    assert one["reason"] in system.words("stage")[0]["reason"]
    record = (system.stage_name, "0", "0", str(one["serial"]), "--digest", one["digest"])
    where = ("--by", "anna", "--config", str(system.config), "--site", "east")
    (folder := system.folder / "instead").write_text("{}")
    assert call("poison", "replace", *record, *where, "--value", str(folder)).code == 3
    assert call("poison", "skip", *record, *where).code == 0
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert call("poison", "list", "--config", str(system.config), "--site", "east").code == 0
