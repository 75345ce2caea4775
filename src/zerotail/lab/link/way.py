"""One direction of the link, with the faults that lie on it at the moment.

All connections that have bytes flowing in this direction share one `Way`: they are delayed, cut, held and
throttled together, like packets on one line. The commands change a way; the lanes read it.
"""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.lab.link.protocol import CutMode, WayStatus

_PLAIN_BUFFER_BYTES = 512 * 1024
_MAX_BUFFER_BYTES = 64 * 1024 * 1024
_DELAYED_BYTES_PER_SECOND = 512 * 1024 * 1024
"""A delayed lane may keep what a line of this speed has in flight, so that delay alone does not cost
throughput.
"""
_THROTTLE_SLICE_SECONDS = 0.01
_THROTTLE_SLICE_BYTES = 64 * 1024


@dataclass(slots=True)
class Way:
    """The state of one direction. `held_bytes` are those taken in and not yet delivered, of all its lanes."""

    direction: str
    latency_seconds: float = 0.0
    bytes_per_second: int | None = None
    cut: CutMode | None = None
    hold_limit_bytes: int | None = None
    delivered_bytes: int = 0
    held_bytes: int = 0
    _free_at: float = 0.0

    @property
    def stands(self) -> bool:
        """Whether nothing is delivered at the moment."""
        return self.cut is not None or self.hold_limit_bytes is not None

    @property
    def is_plain(self) -> bool:
        """Whether bytes may be passed on the moment they are read."""
        return not (self.latency_seconds or self.bytes_per_second or self.stands)

    def room_bytes(self, waiting_bytes: int) -> int:
        """How much a lane with `waiting_bytes` of its own may still take in; the sender keeps the rest."""
        if self.cut is not None:
            return 0
        if self.hold_limit_bytes is not None:
            return max(0, self.hold_limit_bytes - self.held_bytes)
        in_flight_bytes = int(self.latency_seconds * _DELAYED_BYTES_PER_SECOND)
        return max(0, min(_PLAIN_BUFFER_BYTES + in_flight_bytes, _MAX_BUFFER_BYTES) - waiting_bytes)

    def throttle(self, bytes_per_second: int | None) -> None:
        """Change the speed; promises made at the old speed are void."""
        self.bytes_per_second = bytes_per_second
        self._free_at = 0.0

    def reserve(self, wanted_bytes: int, now: float) -> tuple[int, float]:
        """How many of the wanted bytes may leave next, and when: lanes get their slices in the order they
        ask.
        """
        assert self.bytes_per_second is not None  # noqa: S101  (asked only of a throttled way)
        slice_bytes = min(_THROTTLE_SLICE_BYTES, int(self.bytes_per_second * _THROTTLE_SLICE_SECONDS))
        granted_bytes = min(wanted_bytes, max(1, slice_bytes))
        self._free_at = max(now, self._free_at) + granted_bytes / self.bytes_per_second
        return granted_bytes, self._free_at

    def status(self) -> WayStatus:
        """The state as a value."""
        return WayStatus(
            direction=self.direction,
            latency_ms=self.latency_seconds * 1000,
            bytes_per_second=self.bytes_per_second,
            cut=self.cut,
            hold_limit_bytes=self.hold_limit_bytes,
            delivered_bytes=self.delivered_bytes,
            held_bytes=self.held_bytes,
        )
