"""Whether a takeover would lose nothing now, and why not; whether messages may leave, and why not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from zerotail.core.epoch import Durability, Phase
from zerotail.core.gate import Gate
from zerotail.core.standby import Commits, wanted, why_commits_are_unsafe
from zerotail.core.working import told_histories
from zerotail.postgres.look import Books, DatabaseLook, EpochSeen, GateLook
from zerotail.status.answers import SiteAnswers, Unanswered, find_active, find_working

Answer = Literal["ready", "not ready", "unknown"]


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was answered, and what follows at once from it."""

    sites: Sequence[SiteAnswers]
    gate: GateLook | Unanswered | None
    """None when there was nobody to ask, or to ask for."""
    teller: SiteAnswers | None
    active: SiteAnswers | None
    """The site of the epoch in force, whether it answers or not."""
    other: SiteAnswers | None
    """Where a takeover would go."""
    promotes: bool = True
    """Whether a takeover promotes by `pg_promote`, and not by a command of the user's own."""
    broken_code: tuple[str, ...] = ()
    """Why handlers or transforms cannot be loaded."""
    replays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of stages whose state a takeover makes anew: the versions that today's code is meant by, today's first."""

    @property
    def books(self) -> Books | None:
        """What the believed database says."""
        return self.teller.books if self.teller else None

    @property
    def epoch(self) -> EpochSeen | None:
        """The epoch in force."""
        return self.books.epoch if self.books else None

    @property
    def exposed(self) -> bool:
        """Whether messages leave without the other site."""
        return self.epoch is not None and self.epoch.durability == Durability.EXPOSED.value

    @property
    def waits_for_life(self) -> bool:
        """Whether the active site's database was started anew, and nobody has verified that (`core.life`)."""
        return self.active is not None and self.active.look is not None and not self.active.look.life


def judge(seen: Seen, standstills: Iterable[str] = ()) -> tuple[Answer, tuple[str, ...]]:
    """Whether a takeover would lose nothing now, commits return and work that waits is taken; and why not."""
    active, other, epoch = seen.active, seen.other, seen.epoch
    if active is None or other is None or epoch is None:
        return "unknown", tuple(_why_nobody_is_active(seen))
    reasons = [*_why_nothing_works(seen), *_why_producers_stand(seen), *standstills]
    if seen.exposed:
        reasons.append(f"{active.name} works without {other.name}, which may lack what was sent")
    if active.look is None:
        # The gate held back what the other site lacks, but whether the epoch was still gated only its own site knows.
        what = f"nobody knows whether {other.name} has the last that {active.name} wrote"
        reasons.append(f"{why_silent(active)}; {what}")
    elif not gate_is_open(seen):
        reasons.append(why_gate_is_closed(seen))
    else:
        reasons += _why_commits_are_not_safe(active.look, active.name, other.name)
    if other.look is None:
        reasons.append(why_silent(other))
    else:
        reasons += _why_rights_are_missing(other.look, other.name, promotes=seen.promotes)
    if epoch.phase == Phase.OPENED.value:
        reasons.append(f"epoch {epoch.epoch} is opened and not live yet")
    if isinstance(other.brokers, Unanswered) or other.brokers == 0:
        reasons.append(f"no Kafka broker of {other.name} answers")
    reasons += _why_acts_are_refused(seen)
    reasons += [*seen.broken_code, *_why_a_replay_would_end(seen, other.name)]
    if not reasons:
        return "ready", ()
    unknown = active.look is None and other.look is not None and not seen.exposed
    return "unknown" if unknown else "not ready", tuple(dict.fromkeys(reasons))


def _why_nothing_works(seen: Seen) -> Iterator[str]:
    if seen.books is not None and seen.books.restored and seen.active is not None:
        line = f"zerotail schema apply --restored --site {seen.active.name}"
        yield f"the tables were loaded from a dump, so nothing works with them until somebody says so: {line}"


def _why_producers_stand(seen: Seen) -> Iterator[str]:
    if seen.books is None or seen.teller is None:
        return
    for one in seen.books.stands:
        row = f"producer {one.producer} stands at serial {one.serial} of partition {one.partition}"
        yield f"{row}: {one.reason}; zerotail poison list --site {seen.teller.name}"


def _why_a_replay_would_end(seen: Seen, target: str) -> Iterator[str]:
    for head in seen.books.heads if seen.books else ():
        today = seen.replays.get(head.stage, head.versions)
        others = sorted(set(head.versions) - set(today))
        if others:
            made = f"segments of stage {head.stage} were made by version {' and '.join(others)}"
            yield f"{made}, its code is {today[0]}, and a takeover replays them: zerotail takeover plan --to {target}"


def _why_commits_are_not_safe(primary: DatabaseLook, active: str, other: str) -> Iterator[str]:
    """What a commit would meet now: it must wait for the other site, and it must return."""
    if primary.books and primary.books.epoch and primary.books.epoch.durability == Durability.EXPOSED.value:
        return
    if primary.waits_for.strip() and any(follower.state is None for follower in primary.followers):
        yield f"{active} hides who follows: grant pg_read_all_stats to zerotail_reader, zerotail_operator;"
        return
    commits = Commits(primary.waits_for, primary.followers, primary.commit_level)
    if unsafe := why_commits_are_unsafe(commits, active, other):
        yield f"{unsafe}; to mend it: {wanted(other, commits.level)}"


def _why_rights_are_missing(standby: DatabaseLook, site: str, *, promotes: bool) -> Iterator[str]:
    for one in standby.lacks:
        if one.of_the_emitters:
            yield f"the emitters of {site} may not {one.what}: {one.grant};"
        elif (promotes or not one.to_promote) and not one.to_keep_the_tail:
            yield f"the user of {site}'s dsn may not {one.what} in a takeover: {one.grant};"


def _why_acts_are_refused(seen: Seen) -> Iterator[str]:
    if len(working := find_working(seen.sites)) > 1:
        yield told_histories(working)
    if seen.books is None or seen.active is None:
        return
    if not seen.books.sites:
        yield f"the sites have no numbers, so every act is refused: zerotail schema apply --site {seen.active.name}"
    elif seen.books.sites != {site.name for site in seen.sites}:
        yield f"the database knows the sites {' and '.join(sorted(seen.books.sites))}, so every act is refused"


def _why_nobody_is_active(seen: Seen) -> Iterator[str]:
    for site in seen.sites:
        if site.look is None:
            yield why_silent(site)
        elif site.books is None and site.look.role == "primary":
            yield f"{site.name}'s database has not our tables: zerotail schema apply --site {site.name}"
    if seen.books and not seen.epoch:
        yield "there is no epoch yet, nothing has begun: zerotail schema apply --first-epoch --site S"


def gate_is_open(seen: Seen) -> bool:
    """Whether the other site has confirmed everything."""
    return isinstance(seen.gate, GateLook) and seen.gate.verdict is Gate.OPEN


def why_gate_is_closed(seen: Seen) -> str:
    """The reason, with the names of the sites."""
    active, other = seen.active, seen.other
    if active is None or other is None:
        return "no site is active"
    if active.look is None:
        return why_silent(active)
    if find_active(seen.sites) is None:
        return f"{active.name}'s database is no primary in an epoch of its own"
    if other.look is None:
        return why_silent(other)
    if other.books is None and active.books is not None:
        return f"{other.name}'s database has not our tables: its dsn may name the wrong database"
    if isinstance(seen.gate, Unanswered) and seen.gate.way == "declines":
        return f"{other.name}'s database declines the gate's question: {seen.gate.reason}"
    if not isinstance(seen.gate, GateLook):
        return f"{other.name}'s database did not answer the gate's question"
    if seen.gate.verdict is Gate.AHEAD:
        what = f"{other.name} holds {seen.gate.ahead_bytes:,} bytes of the log that {active.name}'s database has lost"
        return f"{what}; nothing is written or sent there: zerotail takeover run --to {other.name}"
    if seen.waits_for_life:
        anew = f"{active.name}'s database was started anew"
        return f"{anew}, and nobody has verified that {other.name} holds no more of its log"
    if seen.gate.verdict is Gate.BEHIND:
        return f"{other.name} has not flushed the last {seen.gate.behind_bytes:,} bytes of {active.name}'s log"
    if seen.gate.answer.in_recovery and seen.gate.answer.timeline == 0:
        return f"{other.name}'s database receives no log from {active.name}"
    return str(seen.gate.verdict.value).replace("the other site", other.name)


def why_silent(site: SiteAnswers) -> str:
    """Why a site's database says nothing."""
    if not isinstance(site.database, Unanswered):
        return f"{site.name}'s database says nothing of it"
    how = {
        "silent": "does not answer",
        "nobody listens": "is down",
        "not asked": "was not asked",
        "declines": f"answers, and declines: {site.database.reason}",
        "slow": f"answers, but too slowly: {site.database.reason}",
    }
    return f"{site.name}'s database {how[site.database.way]}"
