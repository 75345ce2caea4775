"""What the commands of `zerotail mirror` answer with `--json`."""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.mirror.advice import Advice, Verdict
from zerotail.mirror.canary import CanaryReport
from zerotail.mirror.comparison import Compared as CopyCompared
from zerotail.mirror.planning import MirrorPlan
from zerotail.mirror.standing import FlowStanding
from zerotail.mirror.translation import Translated


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
    """`zerotail mirror advise`; `ok` when it is known that nothing has to be set otherwise."""

    ok: bool
    flow: str
    verdict: Verdict
    network: tuple[Advice, ...]
