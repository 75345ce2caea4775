"""What commands answer with `--json`, where they have no type of their own to print.

The commands print these very types, so a form cannot drift from what is printed; `answer_forms` has all of them by
name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zerotail.consume.liveness import GroupVerdict
from zerotail.core.reconciliation import Reconciliation
from zerotail.doctor import Finding
from zerotail.lab.layout import Layout
from zerotail.postgres.comparison import Compared
from zerotail.postgres.doubt import OpenDoubt
from zerotail.postgres.lane_stop import LaneStop
from zerotail.postgres.owed import Backlog
from zerotail.postgres.remedy import Spoiled
from zerotail.postgres.set_aside import SetAside
from zerotail.postgres.verification import Verified
from zerotail.running.shadow import Shadowed
from zerotail.spool.status import SpoolStatus


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """What went wrong; `code` is empty where an error has no number of its own."""

    code: str
    exit_code: int
    message: str
    why: str
    tries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VersionAnswer:
    """`zerotail version`."""

    version: str
    parts: dict[str, str]
    installations: dict[str, str] | None = None
    """By site, where a configuration was named."""


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """`zerotail run`, when the process has ended."""

    what: str
    site: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class ScenarioShown:
    """A scenario of `zerotail drill list`."""

    name: str
    summary: str
    faults: tuple[str, ...]
    """What must have bitten."""
    allowed: str
    """What may be found, stated beforehand."""


@dataclass(frozen=True, slots=True)
class DrillListAnswer:
    """`zerotail drill list`."""

    scenarios: tuple[ScenarioShown, ...]


@dataclass(frozen=True, slots=True)
class DoctorAnswer:
    """`zerotail doctor`."""

    ok: bool
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class LabUpAnswer:
    """`zerotail lab up`."""

    folder: str
    seconds: float
    layout: Layout


@dataclass(frozen=True, slots=True)
class LabDownAnswer:
    """`zerotail lab down`."""

    folder: str
    ended: int


@dataclass(frozen=True, slots=True)
class LabPromoteAnswer:
    """`zerotail lab promote`."""

    site: str
    timeline: int


@dataclass(frozen=True, slots=True)
class LabRejoinAnswer:
    """`zerotail lab rejoin`."""

    site: str


@dataclass(frozen=True, slots=True)
class LabStopDatabaseAnswer:
    """`zerotail lab stop-database`."""

    site: str
    stopped: bool
    """False: it did not run."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """Something wrong in the configuration, and where."""

    origin: str
    file: str | None
    line: int | None
    column: int | None
    key: str
    problem: str
    suggestion: str | None


@dataclass(frozen=True, slots=True)
class ConfigCheckAnswer:
    """`zerotail config check`."""

    ok: bool
    file: str
    problems: tuple[ConfigProblem, ...]


@dataclass(frozen=True, slots=True)
class ConfigShowAnswer:
    """`zerotail config show`; `origins` when they were asked for."""

    file: str
    configuration: dict[str, Any]
    origins: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ConfigSchemaAnswer:
    """`zerotail config schema --json`."""

    json_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A numbered SQL file."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SchemaPrintAnswer:
    """`zerotail schema print`."""

    files: tuple[SchemaFile, ...]


@dataclass(frozen=True, slots=True)
class SchemaApplyAnswer:
    """`zerotail schema apply`: the files that were run, in order."""

    database: str
    files: tuple[str, ...]
    epoch: int | None
    """The first epoch, if it was opened now."""
    seconds: float
    warnings: tuple[str, ...] = ()
    """Such as rights that a superuser has to grant."""
    installation: str = ""
    """The identity of the installation, once something has begun."""


@dataclass(frozen=True, slots=True)
class RecordShown:
    """A record of the journal."""

    position: int
    producer: int
    serial: int
    digest: str
    """Of its stored value, in hexadecimal; empty when there is none."""


@dataclass(frozen=True, slots=True)
class SegmentShown:
    """A segment; runs are producer, first serial, count. Records when they were asked for."""

    segment: int
    epoch: int
    first_position: int
    next_position: int
    decided_at: str
    version: str
    runs: tuple[tuple[int, int, int], ...]
    chain: str
    output_chain: str
    records: tuple[RecordShown, ...] | None = None


@dataclass(frozen=True, slots=True)
class HeadShown:
    """How far a stage and partition has come."""

    epoch: int
    segment: int
    next_position: int
    vector: dict[str, int]
    chain: str
    output_chain: str


@dataclass(frozen=True, slots=True)
class JournalShown:
    """One stage and partition; no head when it is lost."""

    stage: str
    partition: int
    head: HeadShown | None
    segments: tuple[SegmentShown, ...]


@dataclass(frozen=True, slots=True)
class JournalShowAnswer:
    """`zerotail journal show` and `tail`."""

    database: str
    journals: tuple[JournalShown, ...]


@dataclass(frozen=True, slots=True)
class JournalVerifyAnswer:
    """`zerotail journal verify`."""

    ok: bool
    database: str
    journals: tuple[Verified, ...]


@dataclass(frozen=True, slots=True)
class JournalReplayAnswer:
    """`zerotail journal replay`."""

    ok: bool
    database: str
    replays: tuple[Shadowed, ...]


@dataclass(frozen=True, slots=True)
class JournalCompareAnswer:
    """`zerotail journal compare`."""

    ok: bool
    here: str
    there: str
    journals: tuple[Compared, ...]


@dataclass(frozen=True, slots=True)
class ReconcileAnswer:
    """`zerotail reconcile`."""

    ok: bool
    found: Reconciliation


@dataclass(frozen=True, slots=True)
class EmissionsListAnswer:
    """`zerotail emissions list`."""

    lanes: tuple[Backlog, ...]
    doubts: tuple[OpenDoubt, ...]
    exposed: bool
    """Whether what is sent now is stored at this site only."""
    stops: tuple[LaneStop, ...] = ()
    """Lanes that have stopped until a person decides."""


@dataclass(frozen=True, slots=True)
class EmissionsSettleAnswer:
    """`zerotail emissions settle`; `left` are the numbers of the lane that are still in doubt."""

    channel: str
    partition: int
    numbers: tuple[int, ...]
    settled_as: str
    settled_by: str
    left: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EmissionsResumeAnswer:
    """`zerotail emissions resume`; `stopped_for` is why they had stopped."""

    channel: str
    partition: int
    resumed_by: str
    stopped_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoisonListAnswer:
    """`zerotail poison list`."""

    records: tuple[Spoiled, ...]


@dataclass(frozen=True, slots=True)
class PoisonDecideAnswer:
    """`zerotail poison retry`, `skip` and `replace`; not `changed` when the same was decided before."""

    stage: str
    partition: int
    producer: int
    serial: int
    digest: str
    decision: str
    decided_by: str
    changed: bool


@dataclass(frozen=True, slots=True)
class SetAsideListAnswer:
    """`zerotail submissions set-aside list`."""

    rows: tuple[SetAside, ...]


@dataclass(frozen=True, slots=True)
class SetAsideDropAnswer:
    """`zerotail submissions set-aside drop`; `changed` are the rows that were not dropped before."""

    numbers: tuple[int, ...]
    decided_by: str
    changed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SetAsideResubmitAnswer:
    """`zerotail submissions set-aside resubmit`; not `changed` when the same was done before."""

    number: int
    id: str
    partition: int
    serial: int
    decided_by: str
    changed: bool


@dataclass(frozen=True, slots=True)
class SpoolStatusAnswer:
    """`zerotail spool status`; not `ok` when somebody has to look."""

    ok: bool
    spool: SpoolStatus


@dataclass(frozen=True, slots=True)
class CheckGroupAnswer:
    """`zerotail check --group`; `ok` when the group runs or has nothing to do."""

    ok: bool
    verdict: GroupVerdict
