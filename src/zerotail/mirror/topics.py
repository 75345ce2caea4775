"""What a topic at the target is made like: partitions, copies and settings follow the source.

Settings that somebody gave to the source's topic are copied. Those that guard against loss, and those that decide how
long and what is kept, are copied by their effect, even where the source has them from its brokers: the target's
brokers may think otherwise. Two are decided here: the timestamp is always the record's own (the copy keeps the
source's), and there are never fewer copies than the target can hold of those that the source has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BY_EFFECT = (
    "cleanup.policy",
    "compression.type",
    "max.message.bytes",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "unclean.leader.election.enable",
)
_NOT_COPIED = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")
_OURS = {"message.timestamp.type": "CreateTime"}


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic as a cluster describes it."""

    name: str
    topic_id: str
    partitions: int
    copies: int
    settings: Mapping[str, str]
    """All, with what the brokers add."""
    given: frozenset[str]
    """Those that were given to this topic."""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What has to be done at the target so that a topic can be copied; nothing when all three are empty."""

    topic: str
    make: bool
    partitions: int
    copies: int
    settings: Mapping[str, str]
    """To be given to a new topic, or to be changed."""
    notes: tuple[str, ...]

    @property
    def is_ready(self) -> bool:
        """Whether nothing has to be done."""
        return not self.make and not self.partitions and not self.settings


def plan_topic(source: TopicFacts, target_name: str, target: TopicFacts | None, brokers: int) -> TopicPlan:
    """What is missing at the target; a topic that is there is given what it lacks and loses nothing."""
    copies = min(source.copies, brokers)
    wanted = _wanted_settings(source, copies)
    notes = []
    if copies < source.copies:
        notes.append(f"{copies} copies instead of {source.copies}: the target has {brokers} brokers")
    if target is None:
        return TopicPlan(target_name, True, source.partitions, copies, wanted, tuple(notes))
    if target.partitions > source.partitions:
        notes.append(f"the target has {target.partitions} partitions, the source {source.partitions}")
    grown = source.partitions if target.partitions < source.partitions else 0
    changed = {name: value for name, value in wanted.items() if target.settings.get(name) != value}
    return TopicPlan(target_name, False, grown, target.copies, changed, tuple(notes))


def _wanted_settings(source: TopicFacts, copies: int) -> dict[str, str]:
    names = sorted({*BY_EFFECT, *source.given} - set(_NOT_COPIED))
    wanted = {name: source.settings[name] for name in names if name in source.settings} | _OURS
    in_sync = int(wanted.get("min.insync.replicas", "1"))
    # As many as the source asks for, but one copy may be away, or a single broker's restart would stop the mirror.
    most = max(1, copies - 1)
    return wanted | {"min.insync.replicas": str(min(in_sync, most))}
