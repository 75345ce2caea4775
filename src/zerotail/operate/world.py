"""What both databases say of themselves, asked at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from zerotail import ports
from zerotail.config import Configuration
from zerotail.core.epoch import Durability, Phase, works_at
from zerotail.core.identity import SiteName
from zerotail.core.site import require_known_sites
from zerotail.errors import Refused, Unavailable
from zerotail.operate.held import told_holding
from zerotail.postgres.failover import observe_site
from zerotail.postgres.holding import Holding, read_holding
from zerotail.postgres.transaction import Session

_CONNECT_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class World:
    """Both sites; None for one whose database does not answer."""

    sites: Mapping[SiteName, ports.SiteObserved | None]
    holdings: Mapping[SiteName, Holding] = field(default_factory=dict)
    """Of copies that say `exposed` of another site's epoch: what they hold."""

    def of(self, site: SiteName) -> ports.SiteObserved | None:
        """What a site says, if it answers."""
        return self.sites[site]

    def require(self, site: SiteName) -> ports.SiteObserved:
        """What a site says; `Unavailable` when it does not answer."""
        seen = self.sites[site]
        if seen is None:
            raise Unavailable(f"the database of {site} does not answer.", code="ZT401", tries=("zerotail status",))
        return seen

    def require_numbers(self, site: SiteName) -> Mapping[SiteName, int]:
        """The numbers of all sites, by what this one's database says; `Refused` unless it knows the very sites that
        the configuration names.
        """
        seen = self.require(site)
        if not seen.numbers:
            primary = seen.standing.lineage.current.site if seen.standing.timeline is None else site
            raise Refused(
                f"the database of {site} does not know the numbers of the sites yet: run `schema apply` at {primary}.",
                code="ZT439",
                tries=(f"zerotail schema apply --site {primary}",),
            )
        require_known_sites(self.sites, seen.numbers)
        return seen.numbers

    def is_live(self, site: SiteName) -> bool:
        """Whether a site answers, and is live by what its own database says."""
        seen = self.sites[site]
        return seen is not None and seen.standing.live_at(site)

    def find_active(self) -> SiteName | None:
        """The site that works; of two, the one in the later epoch."""
        working = {
            site: seen.standing.epoch
            for site, seen in self.sites.items()
            if seen is not None and works_at(seen.standing.lineage, site, seen.standing.timeline)
        }
        return max(working, key=lambda site: working[site], default=None)

    def find_begun(self) -> SiteName | None:
        """The site at which a takeover has begun and not ended: promoted, and not live in an epoch of its own."""
        begun = [
            site
            for site, seen in self.sites.items()
            if seen is not None and seen.standing.timeline is not None and not seen.standing.live_at(site)
        ]
        return begun[0] if begun else None

    def told(self, site: SiteName) -> str:
        """What a site says, in one line."""
        seen = self.sites[site]
        if seen is None:
            return f"{site}: its database does not answer"
        row = seen.standing.lineage.current
        role = "standby" if seen.standing.timeline is None else f"primary on timeline {seen.standing.timeline}"
        phase = "" if row.phase is Phase.LIVE else f", {row.phase.value}"
        exposed = ", exposed" if row.durability is Durability.EXPOSED else ""
        others = [other for name, other in self.sites.items() if name != site and other is not None]
        lost = not all(seen.can_follow(other) for other in others if other.standing.timeline is not None)
        gone = f", cannot follow: its replication slot {seen.slot} is missing or lost" if lost else ""
        return f"{site}: {role}, in epoch {row.epoch} of {row.site}{phase}{exposed}{gone}"

    def told_holding(self, site: SiteName) -> tuple[str, ...]:
        """What the copy at a site holds, in lines with numbers."""
        return told_holding(self.require(site).flushed, self.holdings.get(site))


def observe_world(configuration: Configuration) -> World:
    """Ask both databases."""
    dsns = {name: site.database.dsn.reveal() for name, site in configuration.sites.items()}
    with ThreadPoolExecutor(len(dsns)) as pool:
        seen = dict(zip(dsns, pool.map(_observe, dsns, dsns.values()), strict=True))
    return World(
        {site: observed for site, (observed, _) in seen.items()},
        {site: holding for site, (_, holding) in seen.items() if holding is not None},
    )


def _observe(site: SiteName, dsn: str) -> tuple[ports.SiteObserved | None, Holding | None]:
    database = Session(dsn, patience_seconds=_PATIENCE_SECONDS, connect_seconds=_CONNECT_SECONDS)
    try:
        seen = database.read(observe_site)
        if not isinstance(seen, ports.SiteObserved):
            return None, None
        row = seen.standing.lineage.current
        if row.durability is Durability.GATED or row.site == site:
            return seen, None
        holding = database.read(read_holding)
        return seen, holding if isinstance(holding, Holding) else None
    finally:
        database.close()
