"""What processes say of themselves, and which stages and producers stand though work waits for them. Pure.

1. A word from before the epoch in force was opened is of a former turn: whoever spoke may be long gone, and whoever
   matters has spoken since.
2. A site that is not the active one has nothing to do, so whoever has stopped there is no trouble.
3. Reports go to the database that works. While it does not answer nobody can report, and silence says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from zerotail.core.receiver import OF_THE_RECEIVER
from zerotail.postgres.process import UPSTREAM, ProcessSeen
from zerotail.status.readiness import Seen
from zerotail.status.values import StageStatus

SILENT_SECONDS = 5.0
"""A process that has said nothing for longer may be gone."""
OTHER_INSTALLATION = "other_installation"
"""What a stage calls its count of records that another installation has written."""


def processes_of_today(seen: Seen) -> tuple[ProcessSeen, ...]:
    """The last words that were said in the epoch in force."""
    if seen.books is None or seen.books.epoch is None:
        return seen.books.processes if seen.books else ()
    turn = seen.books.epoch.seconds_ago
    return tuple(one for one in seen.books.processes if one.silent_seconds <= turn)


def process_troubles(seen: Seen) -> Iterator[str]:
    """Who has stopped, is held up, or has said nothing for long."""
    heard = _is_heard(seen)
    active = seen.active.name if seen.active else None
    for process in processes_of_today(seen):
        name = _told_name(process)
        if strangers := process.counters.get(OTHER_INSTALLATION):
            records = "1 record" if strangers == 1 else f"{int(strangers):,} records"
            yield f"{name} at {process.site} has left out {records} of another installation: who writes to its topic?"
        if process.doing == "stopped" and process.role != "stage":
            watches = process.role in ("follower", "watcher") or (process.name, process.partition) == (UPSTREAM, None)
            if process.site == active or watches:
                yield f"{name} at {process.site} has stopped: {process.reason or 'no reason given'}"
        elif process.role == "emitter" and process.doing == "waiting" and process.reason.startswith(OF_THE_RECEIVER):
            look = f"zerotail emissions list --channel {process.name} --site {process.site}"
            yield f"{name} at {process.site} is held up: {process.reason}; what it owes: {look}"
        elif process.doing != "stopped" and heard and process.silent_seconds > SILENT_SECONDS:
            yield f"{name} at {process.site} is silent for {process.silent_seconds:.0f} s (pid {process.pid})"


def why_stages_stand(
    seen: Seen, stages: Sequence[StageStatus], producers: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """Why work that waits is not taken: its partition has stopped or stalled, or nobody is there who would take it."""
    for stage in stages:
        if stage.stopped:
            yield told_stopped(stage)
        elif not stage.waiting:
            continue
        elif stage.stalled_seconds is not None:
            yield told_stalled(stage)
        elif _is_heard(seen) and (stage.standing_seconds or 0.0) > SILENT_SECONDS:
            missing = [
                f"{role} {name}"
                for role, name in (
                    ("stage", stage.stage),
                    *(("producer", one) for one in producers.get(stage.stage, ())),
                )
                if not _is_at_work(seen, role, name, stage.partition)
            ]
            if missing and seen.active is not None:
                waits = f"{_records(stage)} for partition {stage.partition} of stage {stage.stage}"
                who = f"nothing was heard of {' and '.join(missing)}"
                yield f"{waits}, and {who}: zerotail run all --site {seen.active.name}"


def told_stopped(stage: StageStatus) -> str:
    """A partition that takes nothing before somebody decides."""
    return f"stage {stage.stage} partition {stage.partition} has stopped: {stage.stopped}"


def told_stalled(stage: StageStatus) -> str:
    """A partition that takes nothing, and nobody has said why."""
    place = f"stage {stage.stage} partition {stage.partition}"
    return f"{place} is stalled: {_records(stage)}, no progress for {stage.stalled_seconds:.0f} s"


def _records(stage: StageStatus) -> str:
    return "1 record waits" if stage.waiting == 1 else f"{stage.waiting:,} records wait"


def _is_at_work(seen: Seen, role: str, name: str, partition: int) -> bool:
    return any(
        (process.role, process.name) == (role, name)
        and process.partition in (None, partition)
        and seen.active is not None
        and process.site == seen.active.name
        and process.silent_seconds <= SILENT_SECONDS
        for process in processes_of_today(seen)
    )


def _is_heard(seen: Seen) -> bool:
    """Whether reports reach the database that is believed."""
    return seen.teller is not None and seen.teller.look is not None and seen.teller.look.role == "primary"


def _told_name(process: ProcessSeen) -> str:
    return f"{process.role} {process.name}" + ("" if process.partition is None else f"/{process.partition}")
