"""Work that goes on through the epochs of its own site.

When a site goes on without the other one it opens a newer epoch itself. Whoever was at work then is told that the site
is not live, or that another epoch is current; it is not replaced, and begins again once that epoch is live.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from zerotail.core.epoch import works_at
from zerotail.core.identity import SiteName
from zerotail.ports import End, Standing

_AGAIN_SECONDS = 0.2


def through_renewals(look: Callable[[], object], site: SiteName, stop: Event, work: Callable[[], End]) -> End:
    """Do `work` until it ends for good; `look` reads the site's standing, or something else when it cannot."""
    while True:
        began = _settled(look, site, stop)
        ended = work()
        now = _settled(look, site, stop)
        is_renewed = began is not None and now is not None and now.epoch > began.epoch and now.live_at(site)
        if ended is not End.OUT_OF_STEP and not is_renewed:
            return ended
        stop.wait(_AGAIN_SECONDS)


def _settled(look: Callable[[], object], site: SiteName, stop: Event) -> Standing | None:
    """The standing, once it can be read and no epoch of this site waits to become live; None when told to stop."""
    while not stop.is_set():
        standing = look()
        if isinstance(standing, Standing) and (standing.live_at(site) or not _works(standing, site)):
            return standing
        stop.wait(_AGAIN_SECONDS)
    return None


def _works(standing: Standing, site: SiteName) -> bool:
    return works_at(standing.lineage, site, standing.timeline)
