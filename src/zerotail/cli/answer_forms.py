"""The form of every `--json` answer, by the name in its `schema` field.

`json_schema` writes one down for programs. A form that changes incompatibly gets a new number behind its name. No
command imports this: it would load the types of all the others.
"""

from __future__ import annotations

from typing import Any

import msgspec

from zerotail.audit.judgement import Audit
from zerotail.bench.restore_result import RestoreBench
from zerotail.bench.result import ChecksCost, FlowBench, JournalCost, MirrorResult, TakeoverResult
from zerotail.cli.answers import (
    CheckGroupAnswer,
    ConfigCheckAnswer,
    ConfigSchemaAnswer,
    ConfigShowAnswer,
    DoctorAnswer,
    DrillListAnswer,
    EmissionsListAnswer,
    EmissionsResumeAnswer,
    EmissionsSettleAnswer,
    ErrorAnswer,
    JournalCompareAnswer,
    JournalReplayAnswer,
    JournalShowAnswer,
    JournalVerifyAnswer,
    LabDownAnswer,
    LabPromoteAnswer,
    LabRejoinAnswer,
    LabStopDatabaseAnswer,
    LabUpAnswer,
    PoisonDecideAnswer,
    PoisonListAnswer,
    ReconcileAnswer,
    RunAnswer,
    SchemaApplyAnswer,
    SchemaPrintAnswer,
    SetAsideDropAnswer,
    SetAsideListAnswer,
    SetAsideResubmitAnswer,
    SpoolStatusAnswer,
    VersionAnswer,
)
from zerotail.cli.mirror_answers import (
    MirrorAdviseAnswer,
    MirrorCanaryAnswer,
    MirrorGenerateAnswer,
    MirrorListAnswer,
    MirrorOffsetsAnswer,
    MirrorPlanAnswer,
    MirrorStatusAnswer,
    MirrorVerifyAnswer,
)
from zerotail.drill.durability.result import DurabilityResult
from zerotail.drill.result import DrillResult, DrillSummary
from zerotail.lab.fault import FaultReport
from zerotail.lab.load import Loaded
from zerotail.lab.status import LabStatus
from zerotail.mirror.load import LoadReport
from zerotail.operate.act import ActReport
from zerotail.operate.plan import ActPlan
from zerotail.operate.status import ActStatus
from zerotail.restore.report import RestorePlan, RestoreReport
from zerotail.spool.finish import DrainReport
from zerotail.status.values import Status

ANSWERS: dict[str, type] = {
    "error": ErrorAnswer,
    "audit": Audit,
    "version": VersionAnswer,
    "doctor": DoctorAnswer,
    "run": RunAnswer,
    "bench-durability": DurabilityResult,
    "bench-flow": FlowBench,
    "bench-checks": ChecksCost,
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
    "emissions-resume": EmissionsResumeAnswer,
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
    "submissions-list": SetAsideListAnswer,
    "submissions-drop": SetAsideDropAnswer,
    "submissions-resubmit": SetAsideResubmitAnswer,
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
