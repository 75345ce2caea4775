"""A lab that was broken, made whole again."""

from __future__ import annotations

from contextlib import closing

from zerotail.core.identity import SiteName
from zerotail.core.life import Check
from zerotail.deadline import Deadline, wait_until
from zerotail.flow import life
from zerotail.kafka.cluster import Cluster
from zerotail.lab.database import dsn
from zerotail.lab.fault import continue_target, start_target
from zerotail.lab.layout import Layout
from zerotail.lab.link import LinkControl
from zerotail.lab.receiver import ReceiverControl
from zerotail.wiring import AdapterSettings, SiteAdapters, run_to_end

_SECONDS = 30.0


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
    verify_life(layout)


def verify_life(layout: Layout) -> None:
    """Do what the processes of east do after its database was started: tests write there without any."""
    east, west = layout.database("east"), layout.database("west")
    settings = AdapterSettings(SiteName("east"), dsn(east), dsn(west, seen_from="east"), Cluster("127.0.0.1:1"))
    with closing(SiteAdapters(settings)) as adapters:
        wait_until(
            "east's database is verified",
            lambda: run_to_end(life.verify_life(), adapters) is Check.SOUND,
            Deadline.after(_SECONDS),
        )
