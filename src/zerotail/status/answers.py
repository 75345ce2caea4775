"""What the two sites answered, and which of them is the active one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from zerotail.core.epoch import Durability, Phase
from zerotail.core.identity import Epoch, SiteName
from zerotail.core.working import Working, choose_working
from zerotail.postgres.look import Books, DatabaseLook, EpochSeen


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that got no answer: since when, why, and in which way."""

    since: datetime
    reason: str
    way: Literal["silent", "nobody listens", "not asked", "declines", "slow"] = "silent"


@dataclass(frozen=True, slots=True)
class SiteAnswers:
    """What one site answered."""

    name: str
    database: DatabaseLook | Unanswered
    brokers: int | Unanswered
    brokers_known: int

    @property
    def look(self) -> DatabaseLook | None:
        """The database's answer, if there is one."""
        return None if isinstance(self.database, Unanswered) else self.database

    @property
    def answered(self) -> bool:
        """Whether a server is there and says something, were it only that it lets nobody in."""
        return not isinstance(self.database, Unanswered) or self.database.way in ("declines", "slow")

    @property
    def books(self) -> Books | None:
        """What the tables say, if they do."""
        return self.look.books if self.look else None


def find_active(sites: Sequence[SiteAnswers]) -> SiteAnswers | None:
    """The site whose database is a primary in an epoch of its own; None where there are two histories."""
    found = find_working(sites)
    return next((site for site in sites if site.name in found), None) if len(found) == 1 else None


def find_working(sites: Sequence[SiteAnswers]) -> dict[SiteName, Working]:
    """The sites that work: more than one only where there are two histories."""
    working = {
        SiteName(site.name): Working(
            Epoch(epoch.epoch),
            site.books.epochs if site.books else frozenset(),
            epoch.phase == Phase.OPENED.value and epoch.durability == Durability.GATED.value,
        )
        for site in sites
        if site.look and (epoch := epoch_of(site)) and (epoch.site, epoch.timeline) == (site.name, site.look.timeline)
    }
    return {site: working[site] for site in choose_working(working)}


def find_teller(sites: Sequence[SiteAnswers]) -> SiteAnswers | None:
    """The site whose database is believed: the active one, else the one with the newest epoch."""
    told = [site for site in sites if site.books]
    return find_active(sites) or max(told, key=lambda site: getattr(epoch_of(site), "epoch", 0), default=None)


def expected_active(sites: Sequence[SiteAnswers]) -> str | None:
    """The name of the active site, also when only the other one can tell."""
    teller = find_teller(sites)
    epoch = epoch_of(teller) if teller else None
    return epoch.site if epoch else None


def epoch_of(site: SiteAnswers) -> EpochSeen | None:
    """The newest epoch that a site's database knows."""
    return site.books.epoch if site.books else None
