"""The words of the link's control port: one JSON object per line, each request answered by one line.

A request names its command in the field `command`; an answer is either `done`, with evidence and the whole
new state, or `declined`, with a sentence. The same types are used by the link and by `LinkControl`, so they
cannot drift apart.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

BOTH = "both"
"""The direction of a request that means every way of the link."""

DEFAULT_HOLD_LIMIT_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024
"""A longer request line is declined and its connection closed."""


class CutMode(StrEnum):
    """How a cut shows: silence, or connections that are reset and refused."""

    HANG = "hang"
    RESET = "reset"


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="command", kw_only=True):
    direction: str = BOTH


class Delay(_Request, frozen=True, tag="delay", kw_only=True):
    """Let every byte arrive `latency_ms` later; 0 ends the delay."""

    latency_ms: Annotated[float, msgspec.Meta(ge=0, le=60_000)]


class Cut(_Request, frozen=True, tag="cut", kw_only=True):
    """Let nothing through any more."""

    mode: CutMode = CutMode.HANG


class Heal(_Request, frozen=True, tag="heal", kw_only=True):
    """End a cut."""


class Hold(_Request, frozen=True, tag="hold", kw_only=True):
    """Take bytes in, `limit_bytes` at most over all connections, and deliver none."""

    limit_bytes: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = DEFAULT_HOLD_LIMIT_BYTES


class Release(_Request, frozen=True, tag="release", kw_only=True):
    """End a hold: what was taken in is delivered in order."""


class Throttle(_Request, frozen=True, tag="throttle", kw_only=True):
    """Let all connections together pass so many bytes a second; null ends it."""

    bytes_per_second: Annotated[int, msgspec.Meta(ge=1, le=1 << 40)] | None


class AskStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="command", tag="status"):
    """Change nothing, answer the state."""


Change = Delay | Cut | Heal | Hold | Release | Throttle
Request = Change | AskStatus


class WayStatus(msgspec.Struct, frozen=True):
    """One direction of the link, all forwards together."""

    direction: str
    latency_ms: float
    bytes_per_second: int | None
    cut: CutMode | None
    hold_limit_bytes: int | None
    delivered_bytes: int
    held_bytes: int


class Traffic(msgspec.Struct, frozen=True):
    """Bytes of one forward in one direction; held bytes were taken in and not yet delivered."""

    direction: str
    delivered_bytes: int
    held_bytes: int


class ForwardStatus(msgspec.Struct, frozen=True):
    """One forwarded port. `connections_failed` counts those whose target did not take them."""

    name: str
    listen_port: int
    target_port: int
    connections_open: int
    connections_total: int
    connections_failed: int
    traffic: tuple[Traffic, ...]

    def toward(self, direction: str) -> Traffic:
        """The traffic of one direction; `KeyError` if the forward has no such direction."""
        return {traffic.direction: traffic for traffic in self.traffic}[direction]


class LinkStatus(msgspec.Struct, frozen=True):
    """Everything the link knows of itself."""

    ways: tuple[WayStatus, ...]
    forwards: tuple[ForwardStatus, ...]

    def way(self, direction: str) -> WayStatus:
        """The state of one direction; `KeyError` if there is none of that name."""
        return {way.direction: way for way in self.ways}[direction]

    def forward(self, name: str) -> ForwardStatus:
        """The state of one forward; `KeyError` if there is none of that name."""
        return {forward.name: forward for forward in self.forwards}[name]


class Evidence(msgspec.Struct, frozen=True):
    """What the command met at the moment it took effect."""

    connections_stalled: int = 0
    connections_reset: int = 0
    released_bytes: int = 0


class Done(msgspec.Struct, frozen=True, tag_field="answer", tag="done"):
    """The command took effect."""

    evidence: Evidence
    status: LinkStatus


class Declined(msgspec.Struct, frozen=True, tag_field="answer", tag="declined"):
    """The request was wrong; nothing changed."""

    error: str


Answer = Done | Declined
