"""What the answers of both sites come to: the answer, the figures, and what stands and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from zerotail.core.identity import Epoch, generation_of
from zerotail.postgres.look import EpochSeen, GateLook, HeadSeen
from zerotail.status.answers import SiteAnswers, Unanswered, epoch_of, expected_active, find_teller
from zerotail.status.processes import (
    process_troubles,
    processes_of_today,
    told_stalled,
    told_stopped,
    why_stages_stand,
)
from zerotail.status.readiness import Seen, gate_is_open, judge, why_gate_is_closed, why_silent
from zerotail.status.values import (
    DatabaseStatus,
    EpochStatus,
    GateStatus,
    KafkaStatus,
    SiteStatus,
    StageStatus,
    Status,
    Unknown,
)

STALLED_AFTER_SECONDS = 60.0
"""For a stage that the configuration does not know."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the configuration says about the figures."""

    partitions: Mapping[str, int]
    """Of every stage."""
    stalled_after_seconds: Mapping[str, float]
    holds_when_exposed: bool
    promotes: bool = True
    """Whether a takeover promotes by `pg_promote`."""
    broken_code: tuple[str, ...] = ()
    """Why handlers or transforms cannot be loaded where the question was asked."""
    replays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of stages whose state a takeover makes anew: the versions that today's code is meant by, today's first."""
    producers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of every stage: who brings it records."""


def conclude(
    sites: Sequence[SiteAnswers], gate: GateLook | Unanswered | None, expected: Expected, at: datetime
) -> Status:
    """The status at the moment `at`."""
    name = expected_active(sites)
    seen = Seen(
        sites,
        gate,
        find_teller(sites),
        next((site for site in sites if site.name == name), None),
        next((site for site in sites if name and site.name != name), None),
        expected.promotes,
        expected.broken_code,
        expected.replays,
    )
    stages = tuple(_stages(seen, expected, at))
    answer, reasons = judge(seen, why_stages_stand(seen, stages, expected.producers))
    return Status(
        answer=answer,
        target=seen.other.name if seen.other else None,
        reasons=reasons,
        observed_at=at,
        answered=any(site.answered for site in sites),
        told_by=seen.teller.name if seen.teller else None,
        epoch=_epoch_status(seen.epoch),
        gate=_gate_status(seen),
        sites=tuple(_site_status(site, name) for site in sites),
        stages=stages,
        processes=processes_of_today(seen),
        requests=seen.books.requests if seen.books else (),
        set_aside=seen.books.set_aside if seen.books else None,
        troubles=tuple(_troubles(seen, stages, expected)),
        installation=seen.books.installation if seen.books else "",
    )


def _stages(seen: Seen, expected: Expected, at: datetime) -> Iterator[StageStatus]:
    """Every stage and partition that the database knows, then those that only the configuration knows."""
    heads = seen.books.heads if seen.books else ()
    for head in heads:
        yield _stage(seen, head, expected)
    known = {(head.stage, head.partition) for head in heads}
    reason, since = "it has not begun: the database has no head of it", at
    if seen.books is None:
        silent = [site for site in seen.sites if isinstance(site.database, Unanswered)]
        reason = "; ".join(why_silent(site) for site in silent) or "the database has not our tables"
        since = min((site.database.since for site in silent if isinstance(site.database, Unanswered)), default=at)
    for stage, count in expected.partitions.items():
        for partition in range(count):
            if (stage, partition) not in known:
                yield StageStatus(stage, partition, Unknown(since, reason))


def _stage(seen: Seen, head: HeadSeen, expected: Expected) -> StageStatus:
    books = seen.books
    assert books is not None  # noqa: S101 - a head comes from there
    place = (head.stage, head.partition)
    lanes = [lane for lane in books.lanes if (lane.stage, lane.partition) == place and not lane.to_topic]
    owner = {(lane.channel, lane.partition) for lane in lanes}
    doubts = [one for one in books.doubts if (one.channel, one.partition) in owner and not one.settled]
    limit = expected.stalled_after_seconds.get(head.stage, STALLED_AFTER_SECONDS)
    standing = min(head.idle_seconds, head.oldest_seconds or 0.0)
    stopped = [
        process.reason
        for process in processes_of_today(seen)
        if (process.role, process.doing, process.name, process.partition) == ("stage", "stopped", *place)
        and seen.active is not None
        and process.site == seen.active.name
    ]
    return StageStatus(
        stage=head.stage,
        partition=head.partition,
        unknown=None,
        applied=head.applied,
        records_per_second=head.records_per_second,
        waiting=head.waiting,
        lag_seconds=head.oldest_seconds if head.waiting else 0.0,
        journal_behind=_journal_behind(seen, head),
        owed_messages=sum(lane.messages for lane in lanes),
        owed_bytes=sum(lane.bytes for lane in lanes),
        in_doubt=len(doubts),
        standing_seconds=standing if head.waiting else None,
        stalled_seconds=standing if head.waiting and standing > limit else None,
        stopped=stopped[0] or "no reason given" if stopped else "",
    )


def _journal_behind(seen: Seen, head: HeadSeen) -> int | None:
    """Segments that the other site lacks: none behind an open gate, else as its own tables say."""
    if gate_is_open(seen):
        return 0
    if seen.other is None or seen.teller is not seen.active or seen.other.books is None:
        return None
    if epoch_of(seen.other) != seen.epoch:
        return None
    there = [one for one in seen.other.books.heads if (one.stage, one.partition) == (head.stage, head.partition)]
    return max(0, head.segment - there[0].segment) if there else head.segment


def _epoch_status(epoch: EpochSeen | None) -> EpochStatus | None:
    if epoch is None:
        return None
    return EpochStatus(
        epoch.epoch,
        generation_of(Epoch(epoch.epoch)),
        epoch.site,
        epoch.timeline,
        epoch.phase,
        epoch.durability,
        epoch.opened_at,
        epoch.operator,
    )


def _gate_status(seen: Seen) -> GateStatus:
    if seen.active is None or seen.active.look is None:
        return GateStatus(None, why_gate_is_closed(seen), None)
    behind = seen.gate.behind_bytes if isinstance(seen.gate, GateLook) else None
    return GateStatus(True, "", behind) if gate_is_open(seen) else GateStatus(False, why_gate_is_closed(seen), behind)


def _site_status(site: SiteAnswers, active: str | None) -> SiteStatus:
    part: Literal["active", "standby", "unknown"] = "unknown"
    if active is not None:
        part = "active" if site.name == active else "standby"
    kafka = (
        KafkaStatus(None, site.brokers_known, Unknown(site.brokers.since, site.brokers.reason))
        if isinstance(site.brokers, Unanswered)
        else KafkaStatus(site.brokers, max(site.brokers, site.brokers_known), None)
    )
    look = site.database
    if isinstance(look, Unanswered):
        unknown = Unknown(look.since, look.reason)
        database = DatabaseStatus("down" if look.way == "nobody listens" else "unknown", unknown, None, None, (), None)
    else:
        database = DatabaseStatus(
            look.role, None, look.follows, look.replay_seconds, look.followers, look.books is not None
        )
    return SiteStatus(site.name, part, kafka, database)


def _troubles(seen: Seen, stages: Sequence[StageStatus], expected: Expected) -> Iterator[str]:
    """What stands, and why."""
    owed = sum(stage.owed_messages or 0 for stage in stages)
    wait = f"{owed:,} messages wait" if owed else "nothing is owed"
    if seen.exposed and expected.holds_when_exposed:
        yield f"emission stands: the epoch is exposed and takeover.exposed is hold; {wait}"
    elif seen.active and seen.active.look is None:
        yield f"nobody knows whether {seen.active.name} emits: {why_silent(seen.active)}; {wait}"
    elif seen.active and not seen.exposed and not gate_is_open(seen):
        yield f"emission stands: gate closed: {why_gate_is_closed(seen)}; {wait}"
    if seen.other and seen.other.look and seen.other.look.role == "primary":
        epoch = epoch_of(seen.other)
        alone = epoch is not None and epoch.site == seen.other.name
        what = "in an older epoch: it must not work" if alone else "without an epoch of its own: a takeover has begun"
        yield f"{seen.other.name}'s database is a primary, too, {what}"
    for stage in stages:
        if stage.stopped:
            yield told_stopped(stage)
        elif stage.stalled_seconds is not None:
            yield told_stalled(stage)
    if seen.teller and seen.books and seen.books.set_aside:
        count = seen.books.set_aside
        rows = "1 submitted row is" if count == 1 else f"{count:,} submitted rows are"
        look = f"zerotail submissions set-aside list --site {seen.teller.name}"
        yield f"{rows} set aside, and no stage gets them until somebody decides: {look}"
    yield from process_troubles(seen)
