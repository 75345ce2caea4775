"""Promotion, rejoin and failback on a real pair: what the gate answers to those who belong to an older lineage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.arena import Arena
from support.pair import ask_gate
from zerotail.core.gate import Asker, Gate
from zerotail.core.identity import Epoch, Lsn, epoch_of
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.database import dsn
from zerotail.lab.fault import cut_link, destroy_site, heal_link
from zerotail.lab.layout import Layout
from zerotail.lab.link import CutMode
from zerotail.lab.rejoin import rejoin_site
from zerotail.lab.site import other_site, promote_site
from zerotail.postgres.connection import one_row, session
from zerotail.postgres.gate import observe_asker
from zerotail.postgres.lineage import write_life
from zerotail.postgres.position import read_position
from zerotail.postgres.promotion import current_timeline

pytestmark = pytest.mark.servers
PATIENCE_SECONDS = 60.0


@pytest.fixture
def own_lab(arena: Arena) -> Layout:
    """A new lab, since sites change their roles in it."""
    return arena.renewed()


def patience() -> Deadline:
    return Deadline.after(PATIENCE_SECONDS)


def write(layout: Layout, site: str, *, epoch: Epoch | None = None) -> tuple[Asker, Lsn]:
    """Commit a row at a site's primary, without waiting; who asks for it, and for which position."""
    with session(dsn(layout.database(site)), patience()) as primary:
        primary.execute("set synchronous_commit = local")
        if epoch is not None:
            primary.execute(
                "insert into zerotail.epoch (epoch, site, timeline, durability) values (%s, %s, %s, 'gated')",
                (epoch, site, current_timeline(primary)),
            )
            write_life(primary)
        primary.execute("create table if not exists written (site text)")
        primary.execute("insert into written values (%s)", (site,))
        return observe_asker(primary), read_position(primary)


def ask(layout: Layout, site: str, asker: Asker, wanted: Lsn) -> Gate | None:
    """The gate's answer to a sender at `site`, from the other site's database, through the link."""
    other = layout.database(other_site(site))
    return ask_gate(asker, dsn(other, seen_from=site), wanted, Deadline.after(5))


def wait_until_open(layout: Layout, site: str, asker: Asker, wanted: Lsn) -> None:
    wait_until("the gate opens", lambda: ask(layout, site, asker, wanted) is Gate.OPEN, patience())


def rows(layout: Layout, site: str) -> list[str]:
    with session(dsn(layout.database(site)), patience()) as connection:
        return [row[0] for row in connection.execute("select site from written order by site").fetchall()]


def test_a_sender_of_an_older_lineage_never_passes_the_gate_again(own_lab: Layout) -> None:
    lab = own_lab
    old_asker, released = write(lab, "east")
    wait_until_open(lab, "east", old_asker, released)

    # East goes on behind a cut link: what it writes now, west never gets.
    assert cut_link(lab, "both", CutMode.HANG).bit
    _, lost = write(lab, "east")
    assert ask(lab, "east", old_asker, lost) is None
    promote_site(lab, "west", patience())
    heal_link(lab, "both")
    assert ask(lab, "east", old_asker, released) is Gate.NOT_A_STANDBY
    assert ask(lab, "east", old_asker, lost) is Gate.NOT_A_STANDBY

    # West goes on in a new epoch; east comes back as its standby, without what it wrote alone.
    west_asker, west_position = write(lab, "west", epoch=epoch_of(2, 1))
    assert rows(lab, "west") == ["east", "west"]
    rejoin_site(lab, "east", patience())
    wait_until_open(lab, "west", west_asker, west_position)
    assert rows(lab, "east") == ["east", "west"]

    # And back again. The sender that froze in the first epoch thaws now: west is a standby, and far ahead of it.
    destroy_site(lab, "west")
    promote_site(lab, "east", patience())
    new_asker, position = write(lab, "east", epoch=epoch_of(3, 0))
    rejoin_site(lab, "west", patience())
    wait_until_open(lab, "east", new_asker, position)
    assert ask(lab, "east", old_asker, released) is Gate.OTHER_TIMELINE
    assert ask(lab, "east", replace(new_asker, epoch=old_asker.epoch), released) is Gate.OTHER_EPOCH
    assert ask(lab, "east", replace(new_asker, system=new_asker.system + 1), released) is Gate.OTHER_SYSTEM
    assert ask(lab, "east", new_asker, Lsn(position + 2**40)) is Gate.BEHIND
    with session(dsn(lab.database("east")), patience()) as primary:
        assert one_row(primary, "show synchronous_standby_names") == ("FIRST 1 (west)",)
