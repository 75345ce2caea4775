"""A canary: a record written into the source each second and awaited at the target, end to end.

Lag by offsets says what the mirror believes of itself; a canary is seen by a reader. Its topic, `zerotail-canary`, is
copied by every flow; each rehearsal has a token of its own, so several may run at once.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from zerotail.core.topology import CANARY_TOPIC, Flow
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.catalogue import Catalogue
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.feed import Feeder, Tail
from zerotail.mirror.topics import TopicPlan

_MAKE_SECONDS = 60.0
_RETENTION_MS = str(24 * 3600 * 1000)

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """What became of the canaries."""

    flow: str
    sent: int
    arrived: int
    lost: int
    """Did not arrive while it was waited for them."""
    late: int
    """Arrived later than allowed."""
    doubled: int
    median_seconds: float | None
    worst_seconds: float | None

    @property
    def is_well(self) -> bool:
        """Whether all came, once, in time."""
        return not (self.lost or self.late or self.doubled)


def fly(
    flow: Flow, source: Cluster, target: Cluster, count: int, *, late_seconds: float, every_seconds: float, tell: Tell
) -> CanaryReport:
    """Send `count` canaries and wait for them at most twice as long as they may take."""
    Catalogue(source, flow.source).carry_out(TopicPlan(CANARY_TOPIC, True, 1, 1, {"retention.ms": _RETENTION_MS}, ()))
    copy = flow.target_topic(CANARY_TOPIC)
    catalogue = Catalogue(target, flow.target)
    wait_until(
        f"the mirror makes {copy} at {flow.target}",
        lambda: copy in catalogue.partition_counts()[0],
        Deadline.after(_MAKE_SECONDS),
        every_seconds=0.5,
    )
    token = secrets.token_hex(6)
    feeder, tail = Feeder(source, CANARY_TOPIC), Tail(target, copy)
    sent: dict[int, float] = {}
    seen: dict[int, list[float]] = {}
    try:
        for number in range(count):
            sent[number] = time.time()
            feeder.send(json.dumps({"token": token, "number": number}).encode(), partition=0)
            _watch(tail, token, seen, every_seconds)
            tell(number + 1)
        feeder.finish()
        deadline = Deadline.after(2 * late_seconds)
        while len(seen) < count and not deadline.passed:
            _watch(tail, token, seen, 0.2)
    finally:
        tail.close()
    return judge_flight(flow.name, sent, seen, late_seconds)


def judge_flight(flow: str, sent: dict[int, float], seen: dict[int, list[float]], late_seconds: float) -> CanaryReport:
    """Count what came, what did not, and how long it took."""
    took = sorted(max(0.0, times[0] - sent[number]) for number, times in seen.items() if number in sent)
    return CanaryReport(
        flow,
        len(sent),
        len(took),
        len(sent) - len(took),
        sum(seconds > late_seconds for seconds in took),
        sum(len(times) - 1 for times in seen.values()),
        round(median(took), 3) if took else None,
        round(took[-1], 3) if took else None,
    )


def _watch(tail: Tail, token: str, seen: dict[int, list[float]], seconds: float) -> None:
    for value, at in tail.read(seconds):
        try:
            said = json.loads(value)
        except ValueError:
            continue
        if isinstance(said, dict) and said.get("token") == token:
            seen.setdefault(int(said["number"]), []).append(at)
