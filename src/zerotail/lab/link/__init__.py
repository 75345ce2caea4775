"""The link between the two sites: a TCP proxy that passes everything on, until it is told to misbehave.

Whatever crosses between the sites goes through one process of this package (`python -m zerotail.lab.link`). A
drill, or a person, tells it over a control port to delay, cut, hold or throttle the bytes that flow in one
direction or in both, and reads from each answer whether the fault bit.

    LinkControl ──json lines──> control ──> Link ─┬─ Way       one direction, and the faults that lie on it
                                                  └─ Forward   one listening port
                                                       └─ Connection
                                                            └─ Lane × 2   the bytes of one direction, in order

The words of the control port are in `protocol`; `docs/link.md` describes them for people.
"""

from zerotail.lab.link.client import LinkControl
from zerotail.lab.link.protocol import (
    BOTH,
    CutMode,
    Done,
    Evidence,
    ForwardStatus,
    LinkStatus,
    Traffic,
    WayStatus,
)

__all__ = [
    "BOTH",
    "CutMode",
    "Done",
    "Evidence",
    "ForwardStatus",
    "LinkControl",
    "LinkStatus",
    "Traffic",
    "WayStatus",
]
