"""Work that goes on through the epochs of its own site.

When a site goes on without the other one it opens a newer epoch itself. Whoever was at work then is told that the site
is not live, or that another epoch is current; it is not replaced, and begins again once that epoch is live. Whoever
slept through epochs of the other site is another matter: its site has come back since, with processes of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from zerotail.core.epoch import works_at
from zerotail.core.identity import SiteName
from zerotail.ports import End, Standing

_AGAIN_SECONDS = 0.2


def through_renewals(
    look: Callable[[], object],
    site: SiteName,
    stop: Event,
    work: Callable[[], End],
    out_of_step_seconds: Callable[[], float] = lambda: _AGAIN_SECONDS,
) -> End:
    """Do `work` until it ends for good; `look` reads the site's standing, or something else when it cannot.

    Whoever is out of step begins again after `out_of_step_seconds`, asked each time.
    """
    while True:
        began = _settled(look, site, stop)
        ended = work()
        now = _settled(look, site, stop)
        if ended is not End.OUT_OF_STEP and not _is_renewed(began, now, site):
            return ended
        stop.wait(out_of_step_seconds() if ended is End.OUT_OF_STEP else _AGAIN_SECONDS)


def _is_renewed(began: Standing | None, now: Standing | None, site: SiteName) -> bool:
    """Whether the site works in a newer epoch, and in none of another site's since."""
    if began is None or now is None or not now.live_at(site):
        return False
    since = [row for row in now.lineage.rows if row.epoch > began.epoch]
    return bool(since) and all(row.site == site for row in since)


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
