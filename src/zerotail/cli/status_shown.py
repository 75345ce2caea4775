"""The status as lines: the answer first, then the sites, then stages and processes in columns, then what stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from zerotail.postgres.process import ProcessSeen
from zerotail.status.processes import SILENT_SECONDS
from zerotail.status.values import DatabaseStatus, KafkaStatus, SiteStatus, StageStatus, Status, Unknown

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STAGE_COLUMNS = ("stage", "part", "applied", "rate", "waiting", "lag", "journal", "owed outside", "in doubt")
_PROCESS_COLUMNS = ("process", "site", "doing", "since", "counted")


def status_lines(status: Status) -> list[str]:
    """Everything, for a screen."""
    lines = [first_line(status), *(f"  {reason}" for reason in status.reasons[1:])]
    lines += _site_lines(status.sites)
    if status.installation:
        lines.append(f" installation {status.installation}")
    if status.stages:
        lines += ["", *_table(_stage_columns(status), [_stage_cells(stage) for stage in status.stages])]
    if status.told_by and status.epoch and status.told_by != status.epoch.site:
        lines.append(f" (as {status.told_by}'s database has it)")
    if status.processes:
        lines += ["", *_table(_PROCESS_COLUMNS, [_process_cells(process) for process in status.processes])]
    lines += [
        f" sent again: {one.producer} partition {one.partition} from serial {one.serial} on (request {one.number})"
        for one in status.requests
    ]
    if status.troubles:
        lines += ["", *(f" ! {trouble}" for trouble in status.troubles)]
    return lines


def first_line(status: Status) -> str:
    """Whether a takeover to the other site would lose nothing now, and the first reason why not."""
    epoch = status.epoch
    line = f"{status.answer.upper()} for takeover{f' to {status.target}' if status.target else ''}"
    if epoch and epoch.durability == "exposed":
        line = f"EXPOSED, {line}"
    if status.answer == "ready":
        line += f"     nothing would be lost: gate open, {_bytes(status.gate.behind_bytes or 0)} behind"
    elif status.reasons:
        line += f"     {status.reasons[0]}"
    return f"{line}     epoch {epoch.epoch} ({epoch.site}, {epoch.phase}, {epoch.durability})" if epoch else line


def _site_lines(sites: Sequence[SiteStatus]) -> list[str]:
    names, kafkas = [f"site {site.site} · {site.part}" for site in sites], [_kafka(site.kafka) for site in sites]
    wide, wider = max(map(len, names)), max(map(len, kafkas))
    return [
        f" {name:<{wide}}   {kafka:<{wider}}   {_database(site.database)}"
        for name, kafka, site in zip(names, kafkas, sites, strict=True)
    ]


def _kafka(kafka: KafkaStatus) -> str:
    return f"kafka {_unknown(kafka.unknown)}" if kafka.unknown else f"kafka {kafka.alive}/{kafka.known}"


def _database(database: DatabaseStatus) -> str:
    if database.unknown and database.role == "down":
        return f"postgres down since {_clock(database.unknown.since)}, {database.unknown.reason}"
    if database.unknown:
        return f"postgres {_unknown(database.unknown)}"
    words = [f"postgres {database.role}"]
    if database.role == "standby":
        words.append("follows" if database.follows else "follows nobody")
        words.append("replay ?" if database.replay_seconds is None else f"replay {_seconds(database.replay_seconds)}")
    else:
        words += [
            f"{follower.sync_state} to {follower.name} ({follower.state}, {_bytes(follower.behind_bytes)} behind)"
            for follower in database.followers
        ] or ["nobody follows"]
    if not database.has_tables:
        words.append("our tables are not there")
    return ", ".join(words)


def _stage_columns(status: Status) -> tuple[str, ...]:
    to = f"journal→{status.target}" if status.target else "journal"
    return tuple(to if name == "journal" else name for name in _STAGE_COLUMNS)


def _stage_cells(stage: StageStatus) -> tuple[str, ...]:
    if stage.unknown:
        return (stage.stage, str(stage.partition), _unknown(stage.unknown))
    behind = stage.journal_behind
    return (
        stage.stage,
        str(stage.partition),
        _count(stage.applied),
        f"{_count(round(stage.records_per_second or 0))}/s",
        _count(stage.waiting),
        "?" if stage.lag_seconds is None else _seconds(stage.lag_seconds),
        "?" if behind is None else ("there" if behind == 0 else f"{_count(behind)} behind"),
        f"{_count(stage.owed_messages)} ({_bytes(stage.owed_bytes or 0)})" if stage.owed_messages else "0",
        _count(stage.in_doubt),
    )


def _process_cells(process: ProcessSeen) -> tuple[str, ...]:
    name = f"{process.role} {process.name}" + ("" if process.partition is None else f"/{process.partition}")
    doing = process.doing + (f": {process.reason}" if process.reason else "")
    if process.doing != "stopped" and process.silent_seconds > SILENT_SECONDS:
        doing = f"?  silent for {_seconds(process.silent_seconds)}, was {doing}"
    counted = ", ".join(_counted(name, value) for name, value in process.counters.items())
    return (name, process.site, doing, _clock(process.since), counted)


def _counted(name: str, value: float | None) -> str:
    if name.endswith("_seconds"):
        return f"{name.removesuffix('_seconds')} {'?' if value is None else _seconds(value)}"
    return f"{name} {_count(None if value is None else int(value))}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Aligned columns: figures to the right, words to the left. A row that is too short is one with a remark."""
    whole = [columns, *(row for row in rows if len(row) == len(columns))]
    widths = [max(len(row[place]) for row in whole) for place in range(len(columns))]
    short = [row for row in rows if len(row) < len(columns)]
    for place in range(len(columns)):
        widths[place] = max([widths[place], *(len(row[place]) for row in short if place < len(row) - 1)])
    for row in (columns, *rows):
        cells = []
        for place, cell in enumerate(row):
            if len(row) < len(columns) and place == len(row) - 1:
                cells.append(cell)
            elif columns is _PROCESS_COLUMNS or place == 0:
                cells.append(cell.ljust(widths[place]))
            else:
                cells.append(cell.rjust(widths[place]))
        yield f" {'   '.join(cells)}".rstrip()


def _unknown(unknown: Unknown) -> str:
    return f"?  unknown since {_clock(unknown.since)}, {unknown.reason}"


def _clock(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}".replace(",", " ")


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:,.0f} s".replace(",", " ")


def _bytes(number: float) -> str:
    for unit in _UNITS[:-1]:
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} {_UNITS[-1]}"
