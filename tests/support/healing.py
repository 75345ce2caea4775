"""A lab that was broken, made whole again."""

from __future__ import annotations

from zerotail.deadline import Deadline
from zerotail.lab.fault import continue_target, start_target
from zerotail.lab.layout import Layout
from zerotail.lab.link import LinkControl
from zerotail.lab.receiver import ReceiverControl


def heal(layout: Layout) -> None:
    """Let everything run again, with nothing on the link."""
    for site in ("east", "west", "link", "outside.receiver"):
        start_target(layout, site)
        continue_target(layout, site)
    control = LinkControl(layout.link_control_port)
    deadline = Deadline.after(10)
    control.heal(deadline=deadline)
    control.release(deadline=deadline)
    control.delay(0, deadline=deadline)
    control.throttle(None, deadline=deadline)
    ReceiverControl(layout.receiver_control_port).behave(deadline=deadline)
