"""A standby looks whether what it follows is still the server that it followed.

A primary that lost the end of its log is behind its standby. Once it has grown past the standby's place, its log would
be taken in there, and the one complete copy would hold two histories. So whoever waits at a standby for its turn looks:
a primary of the same system that is *behind* is followed no more. The receiver of the log is stopped; a takeover to
this site needs none, and a rejoin of it makes a new one.

What was found counts until the receiver is stopped, or the other site has opened another epoch: its log grows, and soon
no look finds it behind any more. So whoever may not stop the receiver goes on trying, and says so.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread

from zerotail.core.gate import GateAnswer
from zerotail.core.identity import Epoch
from zerotail.core.life import Check, check
from zerotail.deadline import Deadline
from zerotail.errors import ZerotailError
from zerotail.ports import PositionRead
from zerotail.postgres.connection import connect
from zerotail.postgres.gate import ask_standby
from zerotail.postgres.lineage import observe_position
from zerotail.postgres.process import UPSTREAM
from zerotail.postgres.promotion import stop_receiving
from zerotail.postgres.transaction import Session, session_within
from zerotail.running.report import Say, Tell
from zerotail.wiring import AdapterSettings

_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class LostEnd:
    """What was found: the other site, in an epoch, behind this one."""

    epoch: Epoch
    why: str


def watch_upstream(settings: AdapterSettings, stop: Event, tell: Tell, say: Say) -> None:
    """Look again and again, in a thread of its own, until told to stop or until the receiver was stopped."""

    def keep_looking() -> None:
        lost: LostEnd | None = None
        told, stopped = "", False
        while not stop.is_set() and not stopped:
            with suppress(ZerotailError):
                lost = find_lost_end(settings, lost)
                if lost is not None:
                    said, stopped = stop_receiver(settings, lost)
                    say("emitter", UPSTREAM, None, "stopped", said)
                    if said != told:
                        tell(said)
                        told = said
            stop.wait(_LOOK_SECONDS)
        stop.wait()
        if told:
            say("emitter", UPSTREAM, None, "working")  # its turn has come, and nothing is followed any more

    Thread(target=keep_looking, name="zerotail upstream", daemon=True).start()


def find_lost_end(settings: AdapterSettings, before: LostEnd | None = None) -> LostEnd | None:
    """Whether the other site's database has lost what this standby holds; `before` is what was found at first."""
    answer = _own_answer(settings)
    if not answer.in_recovery:
        return None
    there = _other_site(settings)
    if there is None:
        return before
    epoch = there.standing.epoch
    if check(answer, there.standing.asker, there.position) is Check.AHEAD:
        why = f"the other site's log ends at {there.position}, and {settings.site} holds it up to {answer.holds}"
        return before if before is not None and before.epoch == epoch else LostEnd(epoch, why)
    return before if before is not None and before.epoch == epoch else None


def stop_receiver(settings: AdapterSettings, lost: LostEnd) -> tuple[str, bool]:
    """Stop the receiver of the log: what is to be said, and whether it is stopped."""
    try:
        with session_within(settings.dsn, Deadline.after(_PATIENCE_SECONDS)) as standby:
            stop_receiving(standby)
    except ZerotailError as error:
        return (
            f"{lost.why}: its log must not be received any more, and that could not be stopped ({error.message}); "
            f"zerotail status",
            False,
        )
    return f"{lost.why}: its log is received no more; zerotail takeover run --to {settings.site}", True


def _other_site(settings: AdapterSettings) -> PositionRead | None:
    """Where the other site's primary stands; None where nobody answers as one."""
    upstream = Session(settings.peer_dsn, "zerotail upstream", patience_seconds=_PATIENCE_SECONDS)
    try:
        there = upstream.read(observe_position)
    finally:
        upstream.close()
    return there if isinstance(there, PositionRead) and there.standing.timeline is not None else None


def _own_answer(settings: AdapterSettings) -> GateAnswer:
    deadline = Deadline.after(_PATIENCE_SECONDS)
    standby = connect(settings.dsn, deadline, application="zerotail upstream")
    try:
        return ask_standby(standby, deadline)
    finally:
        standby.close()
