"""How far the follower is behind: in records and in seconds, and unknown where nobody knows."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from zerotail import ports
from zerotail.cli.status_shown import _process_cells
from zerotail.core.head import Head, Hint, advance, first_head
from zerotail.core.identity import (
    Epoch,
    Offset,
    PartitionNumber,
    Position,
    ProducerNumber,
    Serial,
    SiteName,
    StageName,
    TopicName,
)
from zerotail.core.installation import UNMARKED
from zerotail.core.record import digest_of
from zerotail.failover.follow import Followed, append_missing
from zerotail.flow.stage import Stage
from zerotail.postgres.process import ProcessSeen
from zerotail.simulation.topology import BANK, Ledger
from zerotail.spark import running_follower
from zerotail.spark.follower_query import Progress, lag_of
from zerotail.spark.running_follower import RunningFollower

pytestmark = pytest.mark.fast

SETTLE, ZERO = StageName("settle"), PartitionNumber(0)
STAGE = Stage(SETTLE, ZERO, TopicName("payments"), Ledger(BANK), "1", {BANK: 1})
ONE = ProducerNumber(1)
NOW = 1_000.0


def journal(*decided_at: int, first: int = 0) -> ports.JournalRead:
    """Segments of one record each, decided at these microseconds; those before `first` are not asked for."""
    head: Head = first_head(Epoch(256), [ONE])
    segments = []
    for number, at in enumerate(decided_at, 1):
        head, segment = advance(
            head,
            producers=[ONE],
            serials=[Serial(number)],
            digests=[digest_of(b"x")],
            decided_at=at,
            version="1",
            owed={},
            hint=None,
        )
        segments.append(segment)
    standing: Any = SimpleNamespace(installation=UNMARKED)
    return ports.JournalRead(standing, head, segments[first:], [[b"x"]] * (len(segments) - first), Position(first))


def told(*answers: Any) -> Followed:
    """What a pass of the follower comes to when it gets these answers."""
    story, left, answer = append_missing(STAGE, TopicName("payments"), UNMARKED), list(answers), None
    while True:
        try:
            story.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        answer = left.pop(0)


EMPTY = ports.LogEnd(Hint("log", Offset(0)), ProducerNumber(0), Serial(0))


def test_seconds_count_from_the_oldest_record_that_the_topic_lacks() -> None:
    failed = told(EMPTY, journal(990_000_000, 995_000_000), ports.Unreachable())
    assert (failed.missing, lag_of(failed, NOW)) == (2, 10.0)
    later = told(EMPTY, journal(1), ports.Done(), journal(1, 995_500_000, first=1), ports.Unreachable())
    assert (later.appended, later.missing, lag_of(later, NOW)) == (1, 1, 4.5)


def test_the_lag_is_zero_only_when_nothing_is_missing() -> None:
    for passed in (told(EMPTY, journal()), told(EMPTY, journal(1), ports.Done(), journal(1, first=1))):
        assert (passed.missing, lag_of(passed, NOW)) == (0, 0.0)


@pytest.mark.parametrize(
    "silent",
    [[ports.Unreachable()], [EMPTY, ports.Unreachable()], [EMPTY, journal(1), ports.Done(), ports.Indefinite()]],
)
def test_what_nobody_could_tell_is_unknown(silent: list[Any]) -> None:
    followed = told(*silent)
    assert (followed.missing, lag_of(followed, NOW)) == (None, None)
    assert followed.waits_for


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> tuple[RunningFollower, dict[tuple[str, int | None], tuple[Any, ...]]]:
    """A follower, and its newest word on each key."""
    monkeypatch.setattr(running_follower, "follow_task", lambda *_, **__: None)
    database = SimpleNamespace(dsn=SimpleNamespace(reveal=lambda: "host=nowhere"))
    configuration: Any = SimpleNamespace(sites={"west": SimpleNamespace(database=database)})
    said: dict[tuple[str, int | None], tuple[Any, ...]] = {}

    def say(_role: str, name: str, partition: int | None, *words: Any, **_counters: int) -> None:
        said[name, partition] = words

    stages: Any = (SimpleNamespace(name=SETTLE),)
    return RunningFollower(None, configuration, SiteName("west"), stages, say), said  # type: ignore[arg-type]


def test_a_follower_says_what_it_does_not_know(follower: tuple[RunningFollower, Any]) -> None:
    running, said = follower
    running._note(SETTLE, ZERO, Progress(Followed(2, 0), 0.0, None))
    assert said[SETTLE, ZERO] == ("working", "", {"missing": 0, "lag_seconds": 0.0})
    running._note(SETTLE, ZERO, Progress(Followed(waits_for="Kafka does not answer"), None, None))
    assert said[SETTLE, ZERO] == ("waiting", "Kafka does not answer", {"missing": None, "lag_seconds": None})
    assert not running.has_all


def test_a_follower_whose_query_failed_no_longer_says_what_it_saw_before(follower: tuple[RunningFollower, Any]) -> None:
    running, said = follower
    running._note(SETTLE, ZERO, Progress(Followed(2, 0), 0.0, None))
    running.waits("the database does not answer")
    assert said[SETTLE, ZERO] == ("waiting", "the database does not answer", {"missing": None, "lag_seconds": None})
    running._note(SETTLE, ZERO, Progress(Followed(), None, None))
    assert said[SETTLE, None] == ("working",)


@pytest.mark.parametrize(
    ("counters", "shown"),
    [
        ({"appended": 1200, "missing": 0, "lag_seconds": 0.0}, "appended 1 200, missing 0, lag 0.00 s"),
        ({"missing": 3.0, "lag_seconds": 0.784}, "missing 3, lag 0.78 s"),
        ({"missing": None, "lag_seconds": None}, "missing ?, lag ?"),
    ],
)
def test_the_screen_shows_the_lag_as_it_is(counters: dict[str, int | float | None], shown: str) -> None:
    seen = ProcessSeen("west", "follower", "settle", 0, 1, "h", "working", "", datetime.now(UTC), 0.1, counters)
    assert _process_cells(seen)[-1] == shown
