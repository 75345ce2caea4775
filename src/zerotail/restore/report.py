"""What `zerotail restore` answers: the plan, and afterwards prediction and outcome side by side."""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.core.restoration.forecast import Forecast, RestoreStrategy
from zerotail.core.restoration.statistics import Statistics


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What was seen of one partition, and what every strategy would take."""

    stage: str
    topic: str
    """The log's name at the site."""
    partition: int
    journaled: int
    """Records that the journal orders."""
    segments: int
    records: int
    """Records in the log."""
    missing: int
    """Journaled records that the log lacks."""
    ordered: bool
    peak_cache_messages: int
    """About the most records that would wait at one time."""
    forecasts: tuple[Forecast, ...]
    chosen: RestoreStrategy
    """The one that was asked for; of `auto` the best."""
    reason: str

    @property
    def forecast(self) -> Forecast:
        """That of the chosen strategy."""
        return next(one for one in self.forecasts if one.strategy is self.chosen)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """`zerotail restore plan`."""

    site: str
    topic: str
    memory_bytes: int
    partitions: tuple[PartitionPlan, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What restoring one partition took, measured."""

    seconds: float
    memory_bytes: int
    """By how much the process grew at the most, as the operating system saw it."""
    reads: float
    writes: int
    statistics: Statistics | None
    """Of a restoration at the consumer."""


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """One partition: what was predicted, what came."""

    plan: PartitionPlan
    strategy: RestoreStrategy
    outcome: Outcome
    records: int
    """That are now in order, or were passed over."""
    segments: int
    chain: str
    """Behind the last record, computed again and equal to the journal's; empty where no order was restored."""
    state_digest: str
    """Of the state that a replay through the handler came to; empty without one."""
    written_to: str
    """The topic that holds them in order; empty when they were only read."""
    live_offset: int | None
    """Where a consumer goes on in the log behind what is journaled."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """`zerotail restore run`."""

    site: str
    topic: str
    partitions: tuple[PartitionReport, ...]
