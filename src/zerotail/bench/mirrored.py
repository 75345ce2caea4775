"""A plain MirrorMaker 2 failover of the same business, for `zerotail bench takeover --with mm2`.

Payments are written to a topic of the active site and acknowledged by all of Kafka's replicas; a consumer hands each
of them to the receiver; MirrorMaker 2, exactly once and with the shortest sensible intervals, copies the topic and the
positions of the consumer's group. Then everything of the active site is killed at once. The operator does what the
manuals say: the consumer is started at the other site, where its group's translated position is, the business writes
there, and sends again whatever it got no answer for.

Every payment has a number, and the receiver takes whatever comes (class R3). A number that Kafka had acknowledged and
that never comes is lost; one that comes again is a duplicate.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from zerotail.bench.maker import running_maker
from zerotail.bench.mirrored_consumer import CHANNEL
from zerotail.bench.result import MirroredRound
from zerotail.core.identity import TopicName
from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unfinished
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import TopicSettings, admin_client, create_topic
from zerotail.kafka.plain_group import AnsweredWriter, find_position
from zerotail.lab.fault import kill_target
from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import PartitionTotals
from zerotail.lab.up import temporary_lab

TOPIC, GROUP = TopicName("payments-mirrored"), "settle"
_PATIENCE_SECONDS = 120.0
_BEFORE, _AFTER = 4_000, 2_000
"""Messages outside before the fault, and new ones behind it."""
_QUIET_SECONDS = 5.0
Tell = Callable[[str], None]


class Business:
    """Gives payments at a steady rate, and sends again at the other site what got no answer."""

    def __init__(self, cluster: Cluster, rate: float) -> None:
        self._writer = AnsweredWriter(cluster, TOPIC)
        self._rate = rate
        self._stop = Event()
        self._thread: Thread | None = None
        self.given = 0

    def start(self) -> None:
        """Begin."""
        self._stop.clear()
        self._thread = Thread(target=self._give, name="business", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Give nothing more for now."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def move_to(self, cluster: Cluster) -> int:
        """Write to another cluster from now on, first what got no answer; how many those were."""
        unanswered = self._writer.give_up()
        self._writer = AnsweredWriter(cluster, TOPIC)
        for number, value in unanswered.items():
            self._writer.send(number, value)
        return len(unanswered)

    def finish(self) -> None:
        """Wait until everything is acknowledged."""
        self._writer.finish()

    def _give(self) -> None:
        began, before = time.monotonic(), self.given
        while not self._stop.wait(0.005):
            while self.given - before < self._rate * (time.monotonic() - began):
                self.given += 1
                payment = {"number": self.given, "account": f"a{self.given % 997}", "amount": 100}
                self._writer.send(self.given, json.dumps(payment).encode())


def fail_over_once(rate: float, tell: Tell) -> MirroredRound:
    """One loss of a site, in a lab of its own."""
    lab = temporary_lab(lambda folder: LabSettings(folder, receiver_class="R3"))
    with lab as layout, tempfile.TemporaryDirectory(prefix="zerotail-mirrored-") as scratch:
        clusters = {site: Cluster(layout.bootstrap(site)) for site in ("east", "west")}
        create_topic(admin_client(clusters["east"]), TOPIC, TopicSettings(1, 1))
        business = Business(clusters["east"], rate)
        with running_maker("mirrored", clusters, [TOPIC], Path(scratch)):
            with _consumer(layout, "east"):
                business.start()
                _wait_for(layout, _BEFORE)
                wait_until(
                    "the group has a position at the other site",
                    lambda: (find_position(clusters["west"], TOPIC, GROUP) or 0) > 0,
                    Deadline.after(_PATIENCE_SECONDS),
                    every_seconds=0.5,
                )
                _wait_for(layout, _totals(layout).distinct + _BEFORE)
                if not kill_target(layout, "east").bit:
                    raise Unfinished("the site could not be killed.", code="ZT803")
            # Behind the block the consumer is dead, too.
            fault_at = time.monotonic()
            business.stop()
            known = business.given
            asked_at = time.monotonic()
        # MirrorMaker 2 is stopped now: it must not copy positions over those that are in use.
        with _consumer(layout, "west"):
            again = business.move_to(clusters["west"])
            business.start()
            first_at = _wait_for(layout, known + 1, highest=True)
            _wait_for(layout, known + _AFTER, highest=True)
            business.stop()
            business.finish()
            found = _when_quiet(layout)
    tell(f"MirrorMaker 2: {business.given - found.distinct} lost, {found.repeats_accepted} duplicated, {again} unclear")
    return MirroredRound(
        submitted=business.given,
        lost=business.given - found.distinct,
        duplicated=found.repeats_accepted,
        takeover_seconds=round(first_at - asked_at, 3),
        outage_seconds=round(first_at - fault_at, 3),
    )


@contextmanager
def _consumer(layout: Layout, site: str) -> Iterator[None]:
    """The consumer at a site, killed behind the block."""
    words = ["--bootstrap", layout.bootstrap(site), "--topic", TOPIC, "--group", GROUP, "--site", site]
    command = [sys.executable, "-m", "zerotail.bench.mirrored_consumer", *words]
    with subprocess.Popen([*command, "--receiver", str(layout.receiver_port)], stdin=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def _totals(layout: Layout) -> PartitionTotals:
    control = ReceiverControl(layout.receiver_control_port)
    return control.totals(deadline=Deadline.after(_PATIENCE_SECONDS)).of(CHANNEL, 0)


def _wait_for(layout: Layout, count: int, *, highest: bool = False) -> float:
    """The moment at which so many different messages are outside, or one with so high a number."""

    def arrived() -> float | None:
        try:
            found = _totals(layout)
        except KeyError:
            return None
        return time.monotonic() if (found.highest if highest else found.distinct) >= count else None

    what = f"message {count} is outside" if highest else f"{count} messages are outside"
    return wait_until(what, arrived, Deadline.after(_PATIENCE_SECONDS), every_seconds=0.02)


def _when_quiet(layout: Layout) -> PartitionTotals:
    """What the receiver has when nothing has come for some seconds."""
    found, since = _totals(layout), time.monotonic()
    deadline = Deadline.after(_PATIENCE_SECONDS)

    def is_quiet() -> bool:
        nonlocal found, since
        now = _totals(layout)
        if now != found:
            found, since = now, time.monotonic()
        return time.monotonic() - since >= _QUIET_SECONDS

    wait_until("nothing comes any more", is_quiet, deadline, every_seconds=0.1)
    return found
