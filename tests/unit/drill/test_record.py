"""A drill leaves for programs what its page shows: the time line, what the customer saw, the order around a break."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zerotail.drill.arrivals import Arrival
from zerotail.drill.record import record_of, told
from zerotail.drill.rehearsal import CHANNEL, Event, TimedStep
from zerotail.lab.receiver.protocol import MessageAttempt, ReceiverClass, Verdict

pytestmark = pytest.mark.fast


def attempt(number: int, site: str, verdict: Verdict = Verdict.ACCEPTED) -> MessageAttempt:
    return MessageAttempt(
        *(number, CHANNEL, 0, number, 256, 1, site, False, "", 1, 0.0), ReceiverClass.R2, verdict, None
    )


@pytest.fixture
def stage(tmp_path: Path) -> Any:
    (tmp_path / "zerotail.yaml").write_text("name: bank\n")
    return SimpleNamespace(
        active="west",
        faults=[SimpleNamespace(at=1000.5)],
        events=[Event(1000.5, "fault", "site-loss east")],
        steps=[TimedStep("takeover to west", "promote", 1000.6, 1000.8)],
        producers={"cards": 1, "wires": 2},
        config=lambda _site: tmp_path / "zerotail.yaml",
    )


def test_it_holds_times_counts_order_and_what_it_ran_on(stage: Any) -> None:
    arrivals = [Arrival(0.0, 1000.0 + 0.04 * n, 0, n, 1 + n % 2) for n in range(1, 5)]
    arrivals.append(Arrival(0.0, 1002.0, 0, 5, 1))
    # The first acceptance counts: what came once more, from the other site, was a repeat.
    attempts = [
        *(attempt(n, "east") for n in range(1, 5)),
        attempt(4, "west", Verdict.REPEAT_DROPPED),
        attempt(5, "west"),
    ]
    kept = json.loads(json.dumps(told(record_of(stage, arrivals, attempts, {"cores": "2"}))))
    assert (kept["zero"], kept["origin"], kept["configuration"]) == (1000.5, "the first fault", "name: bank\n")
    assert kept["ran_on"] == {"cores": "2"}
    assert kept["events"] == [{"at": 1000.5, "kind": "fault", "what": "site-loss east"}]
    assert kept["steps"][0]["step"] == "promote"
    assert [(one["site"], one["count"]) for one in kept["received"]] == [("east", 3), ("east", 1), ("west", 1)]
    assert [one["at"] for one in kept["received"]] == pytest.approx([1000.04, 1000.14, 1001.94])
    assert kept["order"] == [
        {
            "partition": 0,
            "first_number": 1,
            "changed_at": 5,
            "runs": [["east", 2, 1], ["east", 1, 1], ["east", 2, 1], ["east", 1, 1], ["west", 1, 1]],
        }
    ]
    assert "messages" not in kept
