"""The link as a whole: its ways and forwards, and what each command does to them."""

from __future__ import annotations

from typing import assert_never

from zerotail.lab.link.forward import Forward
from zerotail.lab.link.protocol import (
    BOTH,
    Answer,
    AskStatus,
    Change,
    Cut,
    CutMode,
    Declined,
    Delay,
    Done,
    Evidence,
    Heal,
    Hold,
    LinkStatus,
    Release,
    Request,
    Throttle,
)
from zerotail.lab.link.settings import LinkSettings
from zerotail.lab.link.way import Way


class Link:
    """Made inside a running loop; takes connections from the moment it is made."""

    def __init__(self, settings: LinkSettings) -> None:
        self._ways: dict[str, Way] = {}
        self._forwards: list[Forward] = []
        try:
            for forward in settings.forwards:
                outward, homeward = (
                    self._ways.setdefault(direction, Way(direction, settings.latency_ms / 1000))
                    for direction in (forward.outward, forward.homeward)
                )
                self._forwards.append(Forward(forward, outward, homeward))
        except BaseException:
            self.close()
            raise
        self._reconsider()

    def obey(self, request: Request) -> Answer:
        """Carry out one request."""
        if isinstance(request, AskStatus):
            return Done(Evidence(), self.status())
        ways = [way for way in self._ways.values() if request.direction in (way.direction, BOTH)]
        if not ways:
            known = ", ".join([BOTH, *self._ways])
            return Declined(f"the link has no direction {request.direction!r}; it has {known}")
        for way in ways:
            _change(way, request)
        evidence = self._strike(request, ways)
        self._reconsider()
        return Done(evidence, self.status())

    def status(self) -> LinkStatus:
        """The state as a value."""
        return LinkStatus(
            ways=tuple(way.status() for way in self._ways.values()),
            forwards=tuple(forward.status() for forward in self._forwards),
        )

    def close(self) -> None:
        """Stop listening and end every connection."""
        for forward in self._forwards:
            forward.close()

    def _strike(self, change: Change, ways: list[Way]) -> Evidence:
        """Do to the standing connections what the change asks for, and say what it met."""
        match change:
            case Cut(mode=CutMode.RESET):
                # No connection lives with one direction only, so a reset ends those of both.
                return Evidence(connections_reset=sum(forward.reset_connections() for forward in self._forwards))
            case Cut() | Hold():
                return Evidence(connections_stalled=sum(forward.connections_open for forward in self._forwards))
            case Release():
                return Evidence(released_bytes=sum(way.held_bytes for way in ways))
            case Delay() | Heal() | Throttle():
                return Evidence()
            case _:
                assert_never(change)

    def _reconsider(self) -> None:
        for forward in self._forwards:
            forward.reconsider()


def _change(way: Way, change: Change) -> None:
    match change:
        case Delay(latency_ms=latency_ms):
            way.latency_seconds = latency_ms / 1000
        case Cut(mode=mode):
            way.cut = mode
        case Heal():
            way.cut = None
        case Hold(limit_bytes=limit_bytes):
            way.hold_limit_bytes = limit_bytes
        case Release():
            way.hold_limit_bytes = None
        case Throttle(bytes_per_second=bytes_per_second):
            way.throttle(bytes_per_second)
        case _:
            assert_never(change)
