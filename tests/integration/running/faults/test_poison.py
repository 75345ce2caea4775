"""A record that cannot be taken stops its partition, and only that, until somebody has decided about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command import call
from support.kafka_faults import Kept, TopicAtSite
from support.running import Running
from zerotail.config import load
from zerotail.core.identity import Epoch, ProducerNumber, Serial
from zerotail.core.installation import Installation
from zerotail.core.poison import Remedy
from zerotail.core.record import HEADER_NAME, Header, digest_of, encode
from zerotail.deadline import Deadline
from zerotail.drill.chained import ChainedBytes
from zerotail.drill.checker import check
from zerotail.drill.reading import read_producers, read_site
from zerotail.postgres.connection import session

pytestmark = pytest.mark.servers


def test_a_stopped_partition_goes_on_when_it_is_decided_about_and_the_other_one_always(
    system: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned = json.dumps({"account": "account 1", "amount": 1, "poison": True}).encode()
    before, sent = _position(system, 1), system.counted("producer", "sent")
    first = system.insert_value("cards", 0, poisoned)
    second = system.insert_value("cards", 0, b"this is no JSON")
    system.insert(300)

    one = _stopped_at(system, first)
    assert "cannot settle this" in one["reason"]
    assert one["value"] == poisoned.decode()
    system.wait("the other partition goes on", lambda: _position(system, 1) == before + 2 * 300)
    said = system.words("stage")
    assert said[0]["doing"] == "stopped"
    assert f"serial {first} of producer" in said[0]["reason"]
    assert "cannot settle this" in said[0]["reason"]
    assert said[1]["doing"] == "working"
    assert any(f"{system.stage_name} partition 0 has stopped" in line for line in system.status()["troubles"])
    system.wait("all is sent", lambda: system.counted("producer", "sent") >= sent + 2 + 4 * 300)
    sent = system.counted("producer", "sent")
    system.insert(50)
    system.wait("what is new arrives", lambda: _position(system, 1) == before + 2 * 350)
    system.wait("what is new is sent", lambda: system.counted("producer", "sent") >= sent + 4 * 50)
    assert system.counted("producer", "sent") == sent + 4 * 50, "nothing is sent again while somebody has to decide"

    assert _decide(system, "skip", one) == 0
    system.skipped += 1
    other = _stopped_at(system, second)
    assert "DecodeError" in other["reason"]
    repaired = tmp_path / "repaired.json"
    repaired.write_text(json.dumps({"account": "account 1", "amount": 7}))
    assert _decide(system, "replace", other, "--value", str(repaired)) == 0
    system.wait_until_all_arrived()
    system.require_exactly_once()
    assert call("poison", "list", "--config", str(system.config), "--site", "east").code == 0
    assert system.words("stage")[0]["doing"] == "working"
    verified = call("journal", "verify", "--config", str(system.config), "--site", "east", "--stage", system.stage_name)
    assert verified.code == 0, verified
    monkeypatch.syspath_prepend(system.folder)
    _require_that_a_drill_would_find_the_chain_whole(system)


def test_a_record_with_other_bytes_than_were_sent_is_never_applied(system: Running) -> None:
    (number,), (epoch,) = system.sql(
        "select producer from zerotail.producer where name = %s "
        "union all (select epoch from zerotail.epoch order by epoch desc limit 1)",
        f"cards-{system.name}",
    )
    serial = system.inserted.get(("cards", 0), 0) + 1
    sent, changed = (json.dumps({"account": "account 1", "amount": amount}).encode() for amount in (1, 1000))
    mark = Installation(bytes(system.sql("select identity from zerotail.installation")[0][0])).mark
    header = encode(Header(Epoch(epoch), ProducerNumber(number), Serial(serial), digest_of(sent), mark))
    topic = TopicAtSite(system.lab, system.topic, system.partitions)
    topic.write([Kept(0, changed, [(HEADER_NAME, header)])])

    one = _stopped_at(system, serial)
    assert f"digest {digest_of(changed).hex()}, not {digest_of(sent).hex()}" in one["reason"]
    # The topic made anew is filled from the database, with what was really instructed.
    topic.make_anew()
    assert system.insert_value("cards", 0, sent) == serial
    assert _decide(system, "retry", one) == 0
    system.wait_until_all_arrived()
    system.require_exactly_once()


def _require_that_a_drill_would_find_the_chain_whole(system: Running) -> None:
    with session(system.database, Deadline.after(30)) as primary:
        numbers = {name: number for number, name in read_producers(primary).items()}
        read = read_site(primary, load(str(system.config)), "east", "active")
    assert {decision.remedy for decided in read.decided.values() for _, decision in decided} == set(Remedy)
    verdict = check(read.events, content_of=ChainedBytes(numbers, read.decided))
    assert "S10" not in verdict.broken_rules, verdict.violations


def _stopped_at(system: Running, serial: int) -> dict[str, Any]:
    """The record at which the first partition has stopped, as `poison list` shows it."""

    def found() -> list[dict[str, Any]]:
        said = call("poison", "list", "--config", str(system.config), "--site", "east", "--json")
        records: list[dict[str, Any]] = said.answer("poison-list")["records"]
        return [one for one in records if (one["stage"], one["serial"]) == (system.stage_name, serial)]

    system.wait(f"it stops at serial {serial}", lambda: bool(found()))
    (one,) = found()
    assert (one["partition"], one["producer_name"]) == (0, f"cards-{system.name}")
    return one


def _decide(system: Running, word: str, one: dict[str, Any], *more: str) -> int:
    record = (system.stage_name, "0", one["producer_name"], str(one["serial"]), "--digest", one["digest"])
    where = ("--by", "anna", "--config", str(system.config), "--site", "east")
    return call("poison", word, *record, *where, *more).code


def _position(system: Running, partition: int) -> int:
    query = "select next_position from zerotail.head where stage = %s and partition = %s"
    return int(system.sql(query, system.stage_name, partition)[0][0])
