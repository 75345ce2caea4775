"""Where an act stands: both sites, the steps of the epoch in force, and what was begun and not finished.

What was begun on this machine is in its notes. What was begun on another one shows in the databases: a site that was
promoted and is not live in an epoch of its own, or one that drains.
"""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.config import Configuration
from zerotail.core.epoch import Phase
from zerotail.core.identity import Epoch, SiteName
from zerotail.core.takeover import Step
from zerotail.operate.notebook import Notebook
from zerotail.operate.plan import FAILBACK, STEP_NAMES, TAKEOVER
from zerotail.operate.world import World
from zerotail.postgres.failover import StepDone, read_steps
from zerotail.postgres.transaction import Session

_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class StepStatus:
    """A step that is done, and when."""

    step: str
    done_at: str


@dataclass(frozen=True, slots=True)
class ActStatus:
    """Where the last act of a kind stands."""

    act: str
    seen: tuple[str, ...]
    active: SiteName | None
    epoch: Epoch | None
    cause: str
    operator: str
    """Who opened the epoch, and what was stated."""
    steps: tuple[StepStatus, ...]
    unfinished: SiteName | None
    """The site to which such an act was begun and not finished."""
    begun_at: str | None
    """When that was, if it was on this machine."""
    next: str | None
    """The line that goes on with it."""
    two_histories: bool = False
    """Both sites work, and neither knows the other's epoch."""


def observe_status(configuration: Configuration, world: World, notebook: Notebook, act: str) -> ActStatus:
    """Where it stands; nothing is changed."""
    two = world.told_histories()
    seen = (*((two,) if two else ()), *(world.told(site) for site in configuration.sites))
    note = notebook.find_unfinished((act,))
    steps: tuple[StepStatus, ...] = ()
    if note is not None:
        steps = tuple(_shown(one.step, one.done_at.isoformat()) for one in note.steps)
    active = world.find_active()
    begun_at = note.begun_at.isoformat() if note else None
    here = (note.site, f"zerotail {act} resume") if note is not None else None
    unfinished, line = here or _find_begun_elsewhere(configuration, world, act) or (None, None)
    if active is None:
        return ActStatus(act, seen, None, None, "", "", steps, unfinished, begun_at, line, bool(two))
    row = world.require(active).standing.lineage.current
    recorded = _recorded(configuration.sites[active].database.dsn.reveal(), row.epoch)
    if note is None or recorded:
        steps = tuple(_shown(one.step, one.done_at.isoformat()) for one in recorded)
    return ActStatus(act, seen, active, row.epoch, row.cause, row.operator, steps, unfinished, begun_at, line)


def _find_begun_elsewhere(configuration: Configuration, world: World, act: str) -> tuple[SiteName, str] | None:
    """The target of such an act that a database shows as unfinished, and the line that goes on with it."""
    begun, active = world.find_begun(), world.find_active()
    row = world.require(active).standing.lineage.current if active else None
    handed_over = row is not None and active == begun and row.cause == "handover"
    if begun is not None and (act == TAKEOVER or handed_over):
        target, line = begun, f"zerotail takeover resume --to {begun}"
    elif act != TAKEOVER and active is not None and row is not None and row.phase is Phase.DRAINING:
        target = configuration.other_site(active)
        line = f"zerotail handover plan --to {target}"
    else:
        return None
    return None if act == FAILBACK and target != configuration.preferred_site else (target, line)


def _recorded(dsn: str, epoch: Epoch) -> list[StepDone]:
    database = Session(dsn, patience_seconds=_PATIENCE_SECONDS)
    try:
        found = database.read(lambda connection: read_steps(connection, epoch))
    finally:
        database.close()
    return found if isinstance(found, list) else []


def _shown(step: int, done_at: str) -> StepStatus:
    return StepStatus(STEP_NAMES[Step(step)], done_at)
