"""What both databases say of themselves, asked at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from zerotail import ports
from zerotail.config import Configuration
from zerotail.core.completeness import Surplus, has_lost_end, lost_end
from zerotail.core.epoch import Durability, Phase, works_at
from zerotail.core.identity import ChannelName, Epoch, SiteName
from zerotail.core.site import require_known_sites
from zerotail.core.staleness import CopyAge, told_unbelieved
from zerotail.core.standby import Commits, is_named, wanted, why_commits_are_unsafe
from zerotail.core.working import Working, choose_working, told_histories
from zerotail.errors import Refused, Unavailable, ZerotailError
from zerotail.failover.rejoin import holds_more_perhaps
from zerotail.operate.held import told_age, told_holding
from zerotail.postgres.completeness import Ask, compare_copies
from zerotail.postgres.connection import CANCELLED, LETS_NOBODY_IN, Connection
from zerotail.postgres.failover import observe_site
from zerotail.postgres.holding import Holding, read_age, read_holding
from zerotail.postgres.lineage import NO_EPOCH
from zerotail.postgres.rights import MissingRight, missing_rights
from zerotail.postgres.synchronous import read_commits
from zerotail.postgres.transaction import Session

T = TypeVar("T")
_CONNECT_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0
_ANSWERED = (LETS_NOBODY_IN, CANCELLED)
NOT_OURS = "ZT315"
_PASSES = ("starting up", "shutting down", "in recovery", "too many", "connection slots")
"""What a server says that lets nobody in now, and will."""


@dataclass(frozen=True, slots=True)
class World:
    """Both sites; None for one whose database does not answer, or not what was asked."""

    sites: Mapping[SiteName, ports.SiteObserved | None]
    holdings: Mapping[SiteName, Holding] = field(default_factory=dict)
    """Of copies that say `exposed` of another site's epoch: what they hold."""
    surplus: Mapping[SiteName, Surplus] = field(default_factory=dict)
    """Of copies that were behind the gate of the other site, which may have lost something: what they hold more."""
    lost_ends: Mapping[SiteName, Surplus] = field(default_factory=dict)
    """Of copies at the other site of a primary that has lost the end of its log: what they hold more."""
    ages: Mapping[SiteName, CopyAge] = field(default_factory=dict)
    """How old each database is that answers."""
    claims: Mapping[ChannelName, Epoch | None] = field(default_factory=dict)
    """Of receivers that were asked: the newest epoch in which one was claimed; None where it does not say."""
    silence: Mapping[SiteName, ZerotailError] = field(default_factory=dict)
    """Of those that are None: what is known of the reason."""
    lacks: Mapping[SiteName, tuple[MissingRight, ...]] = field(default_factory=dict)
    """What whoever asks may not do there, of all that an act may need."""
    commits: Mapping[SiteName, Commits] = field(default_factory=dict)
    """Of primaries: whom a commit waits for, and who follows."""

    def of(self, site: SiteName) -> ports.SiteObserved | None:
        """What a site says, if it answers."""
        return self.sites[site]

    def require(self, site: SiteName) -> ports.SiteObserved:
        """What a site says; `Unavailable` when it does not answer."""
        seen = self.sites[site]
        if seen is None:
            raise self.why_silent(site)
        return seen

    def why_silent(self, site: SiteName) -> ZerotailError:
        """What to say of a site that is None: only what did not answer does not answer."""
        why = self.silence.get(site)
        if isinstance(why, Refused):
            return Refused(f"{site}: {why.message}", code=why.code, why=why.why, tries=why.tries)
        if why is not None and self.answers(site):
            line = f"sites: {{{site}: {{database: {{dsn: …}}}}}}    # in the configuration: database, user, password"
            passes = why.code == CANCELLED or any(words in why.message for words in _PASSES)
            kind, tries = (Unavailable, why.tries) if passes else (Refused, (*why.tries, line))
            return kind(f"{site}: {why.message}", code=why.code, tries=(*tries, "zerotail status"))
        tries = why.tries if why else ()
        return Unavailable(f"the database of {site} does not answer.", code="ZT401", tries=(*tries, "zerotail status"))

    def answers(self, site: SiteName) -> bool:
        """Whether a server is there and says something, were it only that it lets nobody in."""
        why = self.silence.get(site)
        return self.sites[site] is not None or self.declines(site) or (why is not None and why.code in _ANSWERED)

    def declines(self, site: SiteName) -> bool:
        """Whether a database lets us in and does not say what was asked: rights, tables or an epoch are missing."""
        return isinstance(self.silence.get(site), Refused)

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

    def require_rights(self, *sites: SiteName, promotes: bool = False, keeps_tail: bool = False) -> None:
        """`Refused` with the statements to type unless whoever asks may do at these sites what an act does there."""
        for site in sites:
            lacks = [
                one
                for one in self.lacks.get(site, ())
                if not one.of_the_emitters
                and (promotes or not one.to_promote)
                and (keeps_tail or not one.to_keep_the_tail)
            ]
            if lacks:
                grants = dict.fromkeys(f"{one.grant};    # in SQL, as a superuser at the primary" for one in lacks)
                raise Refused(
                    f"the user of {site}'s dsn may not {' or '.join(one.what for one in lacks)}, as this act has to.",
                    code="ZT459",
                    why="It would end in the middle. A standby takes no grants: its primary passes them on to it.",
                    tries=tuple(grants),
                )

    def require_commits(self, active: SiteName, other: SiteName, *, follows: bool) -> None:
        """`Refused` with the setting to type unless commits of the active site return, and wait for the other one; of a
        site that does not follow yet: unless they will.
        """
        commits = self.commits.get(active)
        if commits is None:
            return
        unsafe = why_commits_are_unsafe(commits, active, other) if follows else None
        if not follows and not is_named(commits.setting, other):
            named = f"synchronous_standby_names is {commits.setting}" if commits.setting.strip() else "it is empty"
            unsafe = f"commits of {active} would not wait for {other}: {named}"
        if unsafe is not None:
            raise Refused(
                f"{unsafe}.",
                code="ZT449",
                tries=(f"{wanted(other, commits.level)}    # in SQL, as a superuser at {active}", "zerotail status"),
            )

    def require_end(self, site: SiteName) -> None:
        """`Refused` when the database of a site has lost the end of its log, and the other site holds it."""
        for other, more in self.lost_ends.items():
            if other != site:
                raise lost_end(other, site, more)

    def is_live(self, site: SiteName) -> bool:
        """Whether a site answers, and is live by what its own database says."""
        seen = self.sites[site]
        return seen is not None and seen.standing.live_at(site)

    def takes_rows(self, site: SiteName) -> bool:
        """Whether a site is live, and not in a life that nobody has verified."""
        seen = self.sites[site]
        return self.is_live(site) and seen is not None and not seen.standing.waits_for_life

    def find_active(self) -> SiteName | None:
        """The site that works; None also where there are two histories, of which nobody can say which one it is."""
        found = self._working()
        return next(iter(found)) if len(found) == 1 else None

    def told_histories(self) -> str:
        """What is wrong, where both sites work and neither knows the other's epoch; else nothing."""
        found = self._working()
        return told_histories(found) if len(found) > 1 else ""

    def _working(self) -> Mapping[SiteName, Working]:
        working = {
            site: Working.of(seen.standing.lineage)
            for site, seen in self.sites.items()
            if seen is not None and works_at(seen.standing.lineage, site, seen.standing.timeline)
        }
        return {site: working[site] for site in choose_working(working)}

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
            why = self.silence.get(site)
            said = why.message.rstrip(".") if why and self.answers(site) else "its database does not answer"
            return f"{site}: {said}"
        row = seen.standing.lineage.current
        role = "standby" if seen.standing.timeline is None else f"primary on timeline {seen.standing.timeline}"
        phase = "" if row.phase is Phase.LIVE else f", {row.phase.value}"
        exposed = ", exposed" if row.durability is Durability.EXPOSED else ""
        others = [other for name, other in self.sites.items() if name != site and other is not None]
        lost = not all(seen.can_follow(other) for other in others if other.standing.timeline is not None)
        gone = f", cannot follow: its replication slot {seen.slot} is missing or lost" if lost else ""
        anew = ", started anew and not verified" if seen.standing.waits_for_life else ""
        return f"{site}: {role}, in epoch {row.epoch} of {row.site}{phase}{exposed}{anew}{gone}"

    def told_age(self, site: SiteName) -> tuple[str, ...]:
        """How old the copy at a site is: the last change and the last sign of life in it; and what of the receivers'
        answers is not believed.
        """
        seen, age = self.sites[site], self.ages.get(site)
        if seen is None:
            return ()
        wild = told_unbelieved(seen.standing.lineage, self.claims)
        if age is None:
            unread = f"{site}: its last change and its last heartbeat could not be read, so nobody knows how old it is"
            return (unread, *wild)
        return (*told_age(site, seen.flushed, age, datetime.now(UTC)), *wild)

    def is_proven_fresh(self, site: SiteName) -> bool:
        """Whether the other database itself shows that this copy has everything: a part of this history, and no more of
        the log.
        """
        own = self.sites[site]
        others = [other for name, other in self.sites.items() if name != site and other is not None]
        return own is not None and any(
            other.standing.timeline is not None
            and other.standing.system == own.standing.system
            and other.standing.lineage.current.epoch in own.standing.lineage
            and other.flushed <= own.flushed
            for other in others
        )

    def told_holding(self, site: SiteName) -> tuple[str, ...]:
        """What the copy at a site holds, in lines with numbers."""
        return told_holding(self.require(site).flushed, self.holdings.get(site))


def observe_world(configuration: Configuration, *, ask_receivers: bool = False) -> World:
    """Ask both databases; and receivers that remember, where somebody wants to take over."""
    # Clients of every kind of receiver: most acts ask none.
    from zerotail.channel.asking import ask_channels

    dsns = {name: site.database.dsn.reveal() for name, site in configuration.sites.items()}
    with ThreadPoolExecutor(len(dsns)) as pool:
        seen = dict(zip(dsns, pool.map(_observe, dsns, dsns.values()), strict=True))
    answering = {site: one.seen for site, one in seen.items() if one.seen is not None}
    installation = next((one.standing.installation.outside for one in answering.values()), None)
    return World(
        {site: one.seen for site, one in seen.items()},
        {site: one.holding for site, one in seen.items() if one.holding is not None},
        dict(_compared(configuration, answering, holds_more_perhaps)),
        dict(_compared(configuration, answering, _holds_lost_end)),
        ages={site: one.age for site, one in seen.items() if one.age is not None},
        claims=ask_channels(configuration, installation) if ask_receivers and installation is not None else {},
        silence={site: one.silence for site, one in seen.items() if one.silence is not None},
        lacks={site: one.lacks for site, one in seen.items()},
        commits={site: one.commits for site, one in seen.items() if one.commits is not None},
    )


def _compared(
    configuration: Configuration,
    seen: Mapping[SiteName, ports.SiteObserved],
    doubtful: Callable[[ports.SiteObserved, ports.SiteObserved, SiteName], bool],
) -> Iterator[tuple[SiteName, Surplus]]:
    """Of every copy that may hold more than the site whose epoch it is in, for such a reason: what that is."""
    for site, copy in seen.items():
        active = configuration.other_site(site)
        there = seen.get(active)
        if there is None or not doubtful(copy, there, active):
            continue
        try:
            with _asking(configuration, site) as of_copy, _asking(configuration, active) as of_active:
                yield site, compare_copies(of_copy, of_active)
        except ZerotailError:  # one of them is gone just now, or may not be read: nobody can tell
            yield site, Surplus(copy.flushed, None, there.flushed, replayed=False)


def _holds_lost_end(copy: ports.SiteObserved, there: ports.SiteObserved, _active: SiteName) -> bool:
    same = copy.standing.timeline is None and copy.standing.system == there.standing.system
    return same and has_lost_end(copy.flushed, there.flushed, verified=not there.standing.waits_for_life)


@contextmanager
def _asking(configuration: Configuration, site: SiteName) -> Iterator[Ask]:
    dsn = configuration.sites[site].database.dsn.reveal()
    database = Session(dsn, patience_seconds=_PATIENCE_SECONDS, connect_seconds=_CONNECT_SECONDS)

    def ask(work: Callable[[Connection], T]) -> T:
        answer = database.read(work)
        if isinstance(answer, (ports.Unreachable, ports.Refused)):
            raise database.silence(site, answer)
        return answer

    try:
        yield ask
    finally:
        database.close()


@dataclass(frozen=True, slots=True)
class _Observed:
    seen: ports.SiteObserved | None = None
    holding: Holding | None = None
    age: CopyAge | None = None
    silence: ZerotailError | None = None
    lacks: tuple[MissingRight, ...] = ()
    commits: Commits | None = None


def _observe(site: SiteName, dsn: str) -> _Observed:
    database = Session(dsn, patience_seconds=_PATIENCE_SECONDS, connect_seconds=_CONNECT_SECONDS)
    try:
        seen = database.read(observe_site)
        if isinstance(seen, ports.Refused):
            return _Observed(silence=_not_ours(site, seen.reason))
        if not isinstance(seen, ports.SiteObserved):
            return _Observed(silence=database.lost)
        found = database.read(missing_rights)
        lacks = found if isinstance(found, tuple) else ()
        age = database.read(read_age)
        commits = None if seen.standing.timeline is None else database.read(read_commits)
        known = _Observed(
            seen,
            age=age if isinstance(age, CopyAge) else None,
            lacks=lacks,
            commits=commits if isinstance(commits, Commits) else None,
        )
        row = seen.standing.lineage.current
        if row.durability is Durability.GATED or row.site == site:
            return known
        holding = database.read(read_holding)
        return replace(known, holding=holding if isinstance(holding, Holding) else None)
    except Refused as missing_right:
        return _Observed(silence=missing_right)
    finally:
        database.close()


def _not_ours(site: SiteName, reason: str) -> Refused:
    """It answers, and is not a database of this pair, or not yet one."""
    if reason == NO_EPOCH:
        message = "its database answers, and has no epoch yet"
        line = "zerotail schema apply --first-epoch --site S    # S: the site that works"
    else:
        message = f"its database answers, and {reason}"
        line = f"zerotail schema apply --site {site}    # unless its dsn names the wrong database"
    return Refused(f"{message}.", code=NOT_OURS, tries=(line, "zerotail status"))
