"""A standby looks whether what it follows is still the server that it followed.

A primary that lost the end of its log is behind its standby. Once it has grown past the standby's place, its log would
be taken in there, and the one complete copy would hold two histories. So whoever waits at a standby for its turn looks:
a primary of the same system that is *behind* is followed no more. The receiver of the log is stopped; a takeover to
this site needs none, and a rejoin of it makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from zerotail.core.gate import GateAnswer
from zerotail.core.life import Check, check
from zerotail.deadline import Deadline
from zerotail.errors import Refused, ZerotailError
from zerotail.ports import PositionRead
from zerotail.postgres.connection import connect
from zerotail.postgres.gate import ask_standby
from zerotail.postgres.lineage import observe_position
from zerotail.postgres.promotion import stop_receiving
from zerotail.postgres.transaction import Session, session_within
from zerotail.wiring import AdapterSettings

_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 2.0


def watch_upstream(settings: AdapterSettings, stop: Event, tell: Callable[[str], None]) -> None:
    """Look again and again, in a thread of its own, until told to stop or until the receiver was stopped."""

    def keep_looking() -> None:
        while not stop.is_set():
            with suppress(ZerotailError):
                told = stop_if_behind(settings)
                if told:
                    tell(told)
                    return
            stop.wait(_LOOK_SECONDS)

    Thread(target=keep_looking, name="zerotail upstream", daemon=True).start()


def stop_if_behind(settings: AdapterSettings) -> str:
    """Stop the receiver of the log where the other site's database has lost what this one holds; why, if so."""
    answer = _own_answer(settings)
    if not answer.in_recovery:
        return ""
    upstream = Session(settings.peer_dsn, "zerotail upstream", patience_seconds=_PATIENCE_SECONDS)
    try:
        there = upstream.read(observe_position)
    finally:
        upstream.close()
    if not isinstance(there, PositionRead) or there.standing.timeline is None:
        return ""
    if check(answer, there.standing.asker, there.position) is not Check.AHEAD:
        return ""
    why = f"the other site's log ends at {there.position}, and {settings.site} holds it up to {answer.holds}"
    try:
        with session_within(settings.dsn, Deadline.after(_PATIENCE_SECONDS)) as standby:
            stop_receiving(standby)
    except Refused as refused:
        return f"{why}: its log must not be received any more, and that could not be stopped ({refused.message})"
    return f"{why}: its log is received no more; zerotail takeover run --to {settings.site}"


def _own_answer(settings: AdapterSettings) -> GateAnswer:
    deadline = Deadline.after(_PATIENCE_SECONDS)
    standby = connect(settings.dsn, deadline, application="zerotail upstream")
    try:
        return ask_standby(standby, deadline)
    finally:
        standby.close()
