"""What is shown: frozen values that print, as text and as JSON. A figure that nobody knows is None, never zero."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from zerotail.core.standby import Follower
from zerotail.postgres.look import RequestSeen
from zerotail.postgres.process import ProcessSeen


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a figure is not there, and since when."""

    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """A site's database."""

    role: Literal["primary", "standby", "down", "unknown"]
    unknown: Unknown | None
    follows: bool | None
    replay_seconds: float | None
    followers: tuple[Follower, ...]
    has_tables: bool | None


@dataclass(frozen=True, slots=True)
class KafkaStatus:
    """A site's cluster; `alive` is None when nobody knows."""

    alive: int | None
    known: int
    unknown: Unknown | None


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """One site."""

    site: str
    part: Literal["active", "standby", "unknown"]
    kafka: KafkaStatus
    database: DatabaseStatus


@dataclass(frozen=True, slots=True)
class EpochStatus:
    """The epoch in force, as the database says that is named in `Status.told_by`."""

    epoch: int
    generation: int
    site: str
    timeline: int
    phase: str
    durability: str
    opened_at: datetime
    operator: str


@dataclass(frozen=True, slots=True)
class GateStatus:
    """What an emitter of the active site would be told now; `open` is None when there is nobody to ask for."""

    open: bool | None
    reason: str
    behind_bytes: int | None


@dataclass(frozen=True, slots=True)
class StageStatus:
    """A stage and partition; figures are None when they are unknown."""

    stage: str
    partition: int
    unknown: Unknown | None
    applied: int | None = None
    records_per_second: float | None = None
    waiting: int | None = None
    lag_seconds: float | None = None
    """Age of the oldest record that waits."""
    journal_behind: int | None = None
    """Segments that the other site does not have yet."""
    owed_messages: int | None = None
    owed_bytes: int | None = None
    in_doubt: int | None = None
    standing_seconds: float | None = None
    """How long nothing was taken, while something waited."""
    stalled_seconds: float | None = None
    """Set when records wait and nothing moves for longer than the stage's limit."""
    stopped: str = ""
    """Why it takes nothing more, if it has stopped."""


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that is shown."""

    answer: Literal["ready", "not ready", "unknown"]
    target: str | None
    """Where a takeover would go."""
    reasons: tuple[str, ...]
    """Why the answer is not `ready`."""
    observed_at: datetime
    answered: bool
    """Whether any database did."""
    told_by: str | None
    """The site whose database says what follows."""
    epoch: EpochStatus | None
    gate: GateStatus
    sites: tuple[SiteStatus, ...]
    stages: tuple[StageStatus, ...]
    processes: tuple[ProcessSeen, ...]
    requests: tuple[RequestSeen, ...]
    set_aside: int | None
    """Submitted rows that could not become instructions, and wait for a decision."""
    troubles: tuple[str, ...]
    """What stands, and why, in sentences."""
    installation: str = ""
    """Its identity, as the teller's database says; empty where there is none."""
