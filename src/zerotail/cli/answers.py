"""The form of every `--json` answer, by the name in its `schema` field.

The types are those that the commands print, so a form cannot drift from what is printed; `json_schema` writes one
down for programs. A form that changes incompatibly gets a new number behind its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from zerotail.audit.judgement import Audit
from zerotail.bench.restore_result import RestoreBench
from zerotail.bench.result import FlowResult, JournalCost, MirrorResult, TakeoverResult
from zerotail.consume.liveness import GroupVerdict
from zerotail.core.reconciliation import Reconciliation
from zerotail.doctor import Finding
from zerotail.drill.durability.result import DurabilityResult
from zerotail.drill.result import DrillResult, DrillSummary
from zerotail.lab.fault import FaultReport
from zerotail.lab.layout import Layout
from zerotail.lab.load import Loaded
from zerotail.lab.status import LabStatus
from zerotail.mirror.advice import Advice, Verdict
from zerotail.mirror.canary import CanaryReport
from zerotail.mirror.comparison import Compared as CopyCompared
from zerotail.mirror.load import LoadReport
from zerotail.mirror.planning import MirrorPlan
from zerotail.mirror.standing import FlowStanding
from zerotail.mirror.translation import Translated
from zerotail.operate.act import ActReport
from zerotail.operate.plan import ActPlan
from zerotail.operate.status import ActStatus
from zerotail.postgres.comparison import Compared
from zerotail.postgres.doubt import OpenDoubt
from zerotail.postgres.owed import Backlog
from zerotail.postgres.remedy import Spoiled
from zerotail.postgres.verification import Verified
from zerotail.restore.report import RestorePlan, RestoreReport
from zerotail.running.shadow import Shadowed
from zerotail.spool.finish import DrainReport
from zerotail.spool.status import SpoolStatus
from zerotail.status.values import Status


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
    seconds: float


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
class SpoolStatusAnswer:
    """`zerotail spool status`; not `ok` when somebody has to look."""

    ok: bool
    spool: SpoolStatus


@dataclass(frozen=True, slots=True)
class CheckGroupAnswer:
    """`zerotail check --group`; `ok` when the group runs or has nothing to do."""

    ok: bool
    verdict: GroupVerdict


@dataclass(frozen=True, slots=True)
class MirrorShown:
    """A mirror of the configuration."""

    name: str
    topology: str
    engine: str
    flows: tuple[str, ...]
    topics: tuple[str, ...]
    topic_names: str


@dataclass(frozen=True, slots=True)
class MirrorListAnswer:
    """`zerotail mirror list`."""

    mirrors: tuple[MirrorShown, ...]


@dataclass(frozen=True, slots=True)
class MirrorPlanAnswer:
    """`zerotail mirror plan`; `ok` when every principle holds."""

    ok: bool
    plan: MirrorPlan


@dataclass(frozen=True, slots=True)
class MirrorStatusAnswer:
    """`zerotail mirror status`; `ok` when nothing has stopped and everybody answers."""

    ok: bool
    flows: tuple[FlowStanding, ...]


@dataclass(frozen=True, slots=True)
class TopicVerified:
    """One topic of one flow."""

    flow: str
    compared: CopyCompared


@dataclass(frozen=True, slots=True)
class MirrorVerifyAnswer:
    """`zerotail mirror verify`; `ok` when every copy agrees with its source."""

    ok: bool
    topics: tuple[TopicVerified, ...]


@dataclass(frozen=True, slots=True)
class MirrorOffsetsAnswer:
    """`zerotail mirror offsets`; `ok` when every position is exact."""

    ok: bool
    group: str
    target: str
    applied: bool
    positions: tuple[Translated, ...]


@dataclass(frozen=True, slots=True)
class MirrorGenerateAnswer:
    """`zerotail mirror generate`."""

    mirror: str
    form: str
    text: str


@dataclass(frozen=True, slots=True)
class MirrorCanaryAnswer:
    """`zerotail mirror canary`; `ok` when all came, once, in time."""

    ok: bool
    report: CanaryReport


@dataclass(frozen=True, slots=True)
class MirrorAdviseAnswer:
    """`zerotail mirror advise`; `ok` when there is nothing to set otherwise."""

    ok: bool
    flow: str
    verdict: Verdict
    network: tuple[Advice, ...]


ANSWERS: dict[str, type] = {
    "error": ErrorAnswer,
    "audit": Audit,
    "version": VersionAnswer,
    "doctor": DoctorAnswer,
    "run": RunAnswer,
    "bench-durability": DurabilityResult,
    "bench-flow": FlowResult,
    "bench-journal": JournalCost,
    "bench-restore": RestoreBench,
    "bench-mirror": MirrorResult,
    "bench-takeover": TakeoverResult,
    "drill-list": DrillListAnswer,
    "drill-run": DrillResult,
    "drill-runs": DrillSummary,
    "config-check": ConfigCheckAnswer,
    "config-show": ConfigShowAnswer,
    "config-schema": ConfigSchemaAnswer,
    "demo": DrillResult,
    "emissions-list": EmissionsListAnswer,
    "emissions-settle": EmissionsSettleAnswer,
    "lab-up": LabUpAnswer,
    "lab-down": LabDownAnswer,
    "lab-load": Loaded,
    "lab-status": LabStatus,
    "lab-fault": FaultReport,
    "lab-promote": LabPromoteAnswer,
    "lab-rejoin": LabRejoinAnswer,
    "lab-stop-database": LabStopDatabaseAnswer,
    "takeover-plan": ActPlan,
    "takeover-report": ActReport,
    "takeover-status": ActStatus,
    "handover-plan": ActPlan,
    "handover-report": ActReport,
    "handover-status": ActStatus,
    "failback-plan": ActPlan,
    "failback-report": ActReport,
    "failback-status": ActStatus,
    "rejoin-plan": ActPlan,
    "rejoin-report": ActReport,
    "restore-plan": RestorePlan,
    "restore-report": RestoreReport,
    "journal-show": JournalShowAnswer,
    "journal-verify": JournalVerifyAnswer,
    "journal-replay": JournalReplayAnswer,
    "journal-compare": JournalCompareAnswer,
    "poison-list": PoisonListAnswer,
    "poison-decide": PoisonDecideAnswer,
    "reconcile": ReconcileAnswer,
    "schema-print": SchemaPrintAnswer,
    "schema-apply": SchemaApplyAnswer,
    "check-group": CheckGroupAnswer,
    "mirror-advise": MirrorAdviseAnswer,
    "mirror-canary": MirrorCanaryAnswer,
    "mirror-generate": MirrorGenerateAnswer,
    "mirror-list": MirrorListAnswer,
    "mirror-load": LoadReport,
    "mirror-offsets": MirrorOffsetsAnswer,
    "mirror-plan": MirrorPlanAnswer,
    "mirror-status": MirrorStatusAnswer,
    "mirror-verify": MirrorVerifyAnswer,
    "spool-status": SpoolStatusAnswer,
    "spool-drain": DrainReport,
    "status": Status,
}


def schema_name(answer: str) -> str:
    """What stands in the `schema` field."""
    return f"zerotail/{answer}/1"


def json_schema(answer: str) -> dict[str, Any]:
    """The JSON Schema of an answer."""
    (schema,), components = msgspec.json.schema_components([ANSWERS[answer]], ref_template="#/$defs/{name}")
    name = schema["$ref"].rpartition("/")[2]
    top = components.pop(name)
    top["properties"] = {"schema": {"const": schema_name(answer)}, **top["properties"]}
    top["required"] = ["schema", *top["required"]]
    top["additionalProperties"] = False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": components}
