"""Ask both sites at the same time, and never wait for one that is silent.

Each question has a thread of its own. One that is not answered in time is left behind, not waited for: a frozen server
or a host that swallows packets holds up a system call, and no time-out of a driver is as short as a person's patience.
Such a thread ends by itself within seconds, and what it finds then is thrown away.

    1. role, tables and position of both databases, and the brokers of both clusters, all at once;
    2. then the gate: the standby is asked about the position that the active site's database named in 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from datetime import datetime
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from zerotail.deadline import Deadline
from zerotail.errors import ZerotailError
from zerotail.postgres.connection import CANCELLED, LETS_NOBODY_IN, address_of
from zerotail.postgres.look import DatabaseLook, GateLook, observe_database, observe_gate
from zerotail.postgres.vigil import says_anything
from zerotail.status.answers import SiteAnswers, Unanswered, find_active
from zerotail.status.conclusion import Expected, conclude
from zerotail.status.values import Status, Unknown

if TYPE_CHECKING:
    from zerotail.config import Configuration, Site

T = TypeVar("T")

LOOK_SECONDS = 1.0
GATE_SECONDS = 0.5
_THERE_SECONDS = 0.15
_ANSWERED = (LETS_NOBODY_IN, CANCELLED, "ZT303")


class Question(Generic[T]):
    """Something that is being asked in a thread of its own."""

    def __init__(self, ask: Callable[[Deadline], T], seconds: float) -> None:
        self._seconds = seconds
        self._deadline = Deadline.after(seconds)
        self._answers: SimpleQueue[T | BaseException] = SimpleQueue()
        Thread(target=self._ask, args=(ask,), daemon=True).start()

    def answer(self, since: Unknown | None) -> T | Unanswered:
        """The answer; without one, since when and why not. `since` is what was unknown at the look before."""
        try:
            answer = self._answers.get(timeout=self._deadline.seconds_left)
        except Empty:
            answer = TimeoutError(f"no answer within {self._seconds:g} s")
        if not isinstance(answer, BaseException):
            return answer
        if not isinstance(answer, ZerotailError | TimeoutError):
            raise answer
        reason = _short(str(answer))
        way: Literal["silent", "nobody listens", "declines"] = "nobody listens" if "refused" in reason else "silent"
        if isinstance(answer, ZerotailError) and answer.code in _ANSWERED:
            way, reason = "declines", answer.message.partition(": ")[2].rstrip(".")
            if answer.tries:
                reason = f"{reason}: {answer.tries[0].partition('  ')[0]}"
        return Unanswered(since.since if since else _now(), reason, way)

    def _ask(self, ask: Callable[[Deadline], T]) -> None:
        try:
            self._answers.put(ask(self._deadline))
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is taken
            self._answers.put(error)


def observe_status(configuration: Configuration, *, only: str | None = None, before: Status | None = None) -> Status:
    """Look at both sites, or at one. `before` is the last look: it knows since when something is unknown."""
    asked = {name: _ask_site(site) for name, site in configuration.sites.items() if only in (None, name)}
    sites = []
    for name, site in configuration.sites.items():
        database: DatabaseLook | Unanswered = Unanswered(_now(), "not asked", "not asked")
        brokers: int | Unanswered = Unanswered(_now(), "not asked", "not asked")
        if name in asked:
            seen = next((one for one in before.sites if one.site == name), None) if before else None
            database = _told_apart(asked[name][0].answer(seen.database.unknown if seen else None), site)
            brokers = asked[name][1].answer(seen.kafka.unknown if seen else None)
        sites.append(SiteAnswers(name, database, brokers, len(site.kafka.bootstrap.split(","))))
    return conclude(sites, _ask_gate(configuration, sites), _expected(configuration), _now())


def _told_apart(database: DatabaseLook | Unanswered, site: Site) -> DatabaseLook | Unanswered:
    """A server that is there and did not get ready in time is slow, not silent."""
    if not isinstance(database, Unanswered) or database.way != "silent":
        return database
    there = says_anything(address_of(site.database.dsn.reveal()), _THERE_SECONDS)
    return replace(database, way="slow", reason=f"not all within {LOOK_SECONDS:g} s") if there else database


def _ask_site(site: Site) -> tuple[Question[DatabaseLook], Question[int]]:
    dsn, bootstrap = site.database.dsn.reveal(), site.kafka.bootstrap
    settings = {name: value.reveal() for name, value in site.kafka.settings.items()}

    def count(deadline: Deadline) -> int:
        from zerotail.kafka.admin import count_brokers

        return count_brokers(bootstrap, settings, deadline)

    return Question(lambda deadline: observe_database(dsn, deadline), LOOK_SECONDS), Question(count, LOOK_SECONDS)


def _ask_gate(configuration: Configuration, sites: list[SiteAnswers]) -> GateLook | Unanswered | None:
    active = find_active(sites)
    other = next((site for site in sites if site is not active), None)
    if active is None or active.look is None or other is None or other.look is None:
        return None
    primary = active.look
    dsns = {str(name): site.database.dsn.reveal() for name, site in configuration.sites.items()}
    own, its = dsns[active.name], dsns[other.name]
    return Question(lambda deadline: observe_gate(primary, own, its, deadline), GATE_SECONDS).answer(None)


def _expected(configuration: Configuration) -> Expected:
    stages = configuration.stages
    broken, replays = _look_at_code(configuration)
    return Expected(
        {name: configuration.topics[stage.consumes].partitions for name, stage in stages.items()},
        {name: stage.stalled_after.total_seconds() for name, stage in stages.items()},
        configuration.takeover.exposed == "hold",
        configuration.takeover.promote is None,
        broken,
        replays,
        {
            name: tuple(one for one, producer in configuration.producers.items() if producer.topic == stage.consumes)
            for name, stage in stages.items()
        },
    )


def _look_at_code(configuration: Configuration) -> tuple[tuple[str, ...], dict[str, tuple[str, str]]]:
    """What a takeover would meet of the user's code here: what cannot be loaded, and versions for what is replayed."""
    from zerotail.running.code_versions import find_broken_code, versions_of

    broken = tuple(dict.fromkeys(error.message.rstrip(".") for _, error in find_broken_code(configuration)))
    replays = {}
    with redirect_stdout(sys.stderr):  # whatever modules print when they are imported is no part of the answer
        for name, stage in configuration.stages.items():
            if stage.state == "replay":
                with suppress(ZerotailError):
                    replays[str(name)] = versions_of(configuration, name)
    return broken, replays


def _short(message: str) -> str:
    """The end of a sentence that says why: what stands behind "failed:" in the driver's words."""
    return message.rpartition("failed: ")[2].strip().rstrip(".")


def _now() -> datetime:
    return datetime.now().astimezone()
