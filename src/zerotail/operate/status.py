"""Where an act stands: both sites, the steps of the epoch in force, and what was begun here and not finished."""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.config import Configuration
from zerotail.core.identity import Epoch, SiteName
from zerotail.core.takeover import Step
from zerotail.operate.notebook import Notebook
from zerotail.operate.plan import STEP_NAMES
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
    unfinished: str | None
    """The site to which such an act was begun on this machine and not finished."""
    begun_at: str | None


def observe_status(configuration: Configuration, world: World, notebook: Notebook, act: str) -> ActStatus:
    """Where it stands; nothing is changed."""
    seen = tuple(world.told(site) for site in configuration.sites)
    note = notebook.find_unfinished((act,))
    steps: tuple[StepStatus, ...] = ()
    if note is not None:
        steps = tuple(_shown(one.step, one.done_at.isoformat()) for one in note.steps)
    active = world.find_active()
    begun_at = note.begun_at.isoformat() if note else None
    unfinished = note.site if note else None
    if active is None:
        return ActStatus(act, seen, None, None, "", "", steps, unfinished, begun_at)
    row = world.require(active).standing.lineage.current
    recorded = _recorded(configuration.sites[active].database.dsn.reveal(), row.epoch)
    if note is None or recorded:
        steps = tuple(_shown(one.step, one.done_at.isoformat()) for one in recorded)
    return ActStatus(act, seen, active, row.epoch, row.cause, row.operator, steps, unfinished, begun_at)


def _recorded(dsn: str, epoch: Epoch) -> list[StepDone]:
    database = Session(dsn, patience_seconds=_PATIENCE_SECONDS)
    try:
        found = database.read(lambda connection: read_steps(connection, epoch))
    finally:
        database.close()
    return found if isinstance(found, list) else []


def _shown(step: int, done_at: str) -> StepStatus:
    return StepStatus(STEP_NAMES[Step(step)], done_at)
