"""The process that takes the records of one partition which others must not wait for (`alone.py`).

It is told what to do on its standard input, and answers on what was its standard output: whatever a handler prints goes
to standard error.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass
from typing import BinaryIO

from zerotail.core.head import Hint
from zerotail.core.identity import TopicName
from zerotail.core.installation import Installation
from zerotail.core.poison import RecordName
from zerotail.errors import ZerotailError
from zerotail.flow.stage import Place, Stage, take_batch
from zerotail.ports import HintLost, Polled, PollRecords
from zerotail.spark.own_process import answers_to_the_starter
from zerotail.spark.patience import HandlerTimeoutError, run_within
from zerotail.spark.results import Outcome, pack_outcome
from zerotail.wiring import AdapterSettings, SiteAdapters


@dataclass(frozen=True, slots=True)
class Job:
    """The partition, once and for all."""

    stage: Stage
    settings: AdapterSettings
    topic: TopicName
    installation: Installation
    handler_seconds: float


@dataclass(frozen=True, slots=True)
class Order:
    """Take so many records behind a place."""

    place: Place
    hint: Hint | None
    limit: int


@dataclass(frozen=True, slots=True)
class Begun:
    """So many records were read; the first of them."""

    count: int
    first: RecordName | None
    digest: bytes = b""


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of it, packed; None when nothing could be read. Then the place in the log behind it."""

    outcome: bytes
    hint: Hint | None
    unread: bool = False
    """Whether the log could not be read at all, which is something else than nothing new."""


def main() -> None:
    """Answer orders until nobody gives any."""
    answers = answers_to_the_starter()
    orders = sys.stdin.buffer
    job: Job = pickle.load(orders)  # noqa: S301 - from the process that started this one
    adapters = SiteAdapters(job.settings)
    while True:
        try:
            order: Order = pickle.load(orders)  # noqa: S301
        except EOFError:
            return
        _obey(job, adapters, order, answers)


def _obey(job: Job, adapters: SiteAdapters, order: Order, answers: BinaryIO) -> None:
    wanted = PollRecords(job.topic, job.stage.partition, order.hint, order.limit, job.installation)
    polled = adapters.carry_out(wanted)
    if not isinstance(polled, Polled):
        tell(answers, Begun(0, None))
        lost = isinstance(polled, HintLost)
        tell(answers, Finished(pack_outcome(None), None if lost else order.hint, unread=not lost))
        return
    batch = polled.batch
    count = len(batch.serials)
    first = (batch.producers[0], batch.serials[0]) if count else None
    tell(answers, Begun(count, first, batch.digests[0] if count else b""))
    outcome: Outcome = None
    if count:
        story = take_batch(job.stage, order.place, batch, polled.hint, polled.at)
        try:
            outcome = run_within(story, adapters, job.handler_seconds, lambda: HandlerTimeoutError(job.handler_seconds))
        except ZerotailError as error:
            outcome = error
    tell(answers, Finished(pack_outcome(outcome), polled.hint))


def tell(answers: BinaryIO, what: Begun | Finished) -> None:
    """Write one answer."""
    pickle.dump(what, answers)
    answers.flush()
