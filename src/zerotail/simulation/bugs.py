"""Named bugs: what the protocol would do without one of its rules, and which rule of the verdict says so.

A bug is planted from outside, by replacing a decision of the protocol, or a check of the schema, for the
length of a run; the code that is shipped has no switches. A simulation that does not find these proves
nothing, so each of them is looked for in every test run.

`rules` are the verdicts that may name it: a missing rule shows in more than one way. `where` narrows the
plans to those in which the bug can show at all (a bug of R3 needs an R3 receiver); `seed` is only where the
search begins. An `equivalent` bug breaks nothing, because another rule stands behind the one that is
missing; it says which.
"""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# ruff: noqa: ARG001
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from zerotail import ports
from zerotail.core import admission, epoch, gate, head, receiver, takeover
from zerotail.core.admission import Admission, Arrivals
from zerotail.core.emission import Lane
from zerotail.core.gate import Gate, GateAnswer, Release
from zerotail.core.identity import EmissionNumber, Epoch, Lsn, Serial, Timeline, epoch_of, generation_of
from zerotail.core.poison import Decision, Poison, Remedy
from zerotail.core.receiver import DoubtPolicy, ReceiverClass, Resume
from zerotail.failover import follow, rejoin, replay
from zerotail.failover import takeover as takeovers
from zerotail.flow import apply, emit, produce, stage, submit
from zerotail.handler import Emission, Given
from zerotail.simulation import normal_day, operators, parts
from zerotail.simulation import plan as plans
from zerotail.simulation.outside import Receiver
from zerotail.simulation.topology import Ledger
from zerotail.simulation.world import World

Patch = tuple[Any, str, Any]
"""Where, which name, and what stands there instead."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One missing or wrong rule."""

    name: str
    what: str
    rules: tuple[str, ...]
    patches: Callable[[], list[Patch]]
    where: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    equivalent: str = ""

    def narrowed(self, drawn: plans.Plan) -> plans.Plan:
        """A plan in which the bug can show."""
        changes = dict(self.where)
        more, spacing = changes.pop("more_faults", ()), changes.pop("spacing", 37)
        lasting = changes.pop("lasting", 40)
        if more:
            step = drawn.seed % max(1, drawn.horizon - 60)
            extra = [
                plans.Fault(1 + (step + spacing * number) % drawn.horizon, kind, lasting, drawn.seed + number)
                for number, kind in enumerate(more)
            ]
            changes["faults"] = tuple(sorted((*drawn.faults, *extra), key=lambda fault: fault.step))
        return replace(drawn, **changes)


BUGS: dict[str, Bug] = {}


def _bug(
    name: str,
    what: str,
    *rules: str,
    where: dict[str, Any] | None = None,
    seed: int = 0,
    equivalent: str = "",
) -> Callable[[Callable[[], list[Patch]]], Callable[[], list[Patch]]]:
    def register(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        BUGS[name] = Bug(name, what, rules, patches, where or {}, seed, equivalent)
        return patches

    return register


@contextmanager
def planted(name: str | None) -> Iterator[Bug | None]:
    """Run with a bug; nothing of it is left afterwards."""
    if name is None:
        yield None
        return
    bug = BUGS[name]
    undo: list[Patch] = []
    try:
        for where, attribute, broken in bug.patches():
            undo.append((where, attribute, getattr(where, attribute)))
            setattr(where, attribute, broken)
        yield bug
    finally:
        for where, attribute, original in reversed(undo):
            setattr(where, attribute, original)


R1 = {"receiver": ReceiverClass.R1}
R2 = {"receiver": ReceiverClass.R2}
R3 = {"receiver": ReceiverClass.R3}
HOPS = {"two_stages": True}
INSIDE = {
    "clients": 2,
    "instructions": 16,
    "more_faults": (plans.LINK_ONE_WAY, plans.DB_FAILOVER) * 4,
    "spacing": 11,
}
SITE_CHANGES = {"more_faults": (plans.TAKEOVER, plans.REJOIN, plans.TAKEOVER, plans.REJOIN)}
BOTH_ALONE = {
    "receiver": ReceiverClass.R2,
    "errant": True,
    "more_faults": (plans.LINK_CUT, plans.EXPOSE, plans.TAKEOVER, plans.TAKEOVER_BOTH),
}
CUT_OFF = {"more_faults": (plans.LINK_CUT, plans.TAKEOVER, plans.LINK_CUT, plans.REJOIN)}


# The gate.


def _pretend(standing: ports.Standing, wanted: Lsn, **_: Any) -> ports.Story[Release | None]:
    asker = standing.asker
    return Release(asker, wanted, GateAnswer(True, asker.system, asker.timeline, asker.epoch, wanted))
    yield


@_bug("gate-missing", "emissions leave at once", "S8", "S2", where=CUT_OFF)
def _() -> list[Patch]:
    return [(emit, "pass_gate", _pretend)]


@_bug(
    "gate-asks-the-own-database",
    "the row is visible here, so it must be there",
    "S8",
    "S2",
    "S14",
    "S1",
    where=CUT_OFF,
)
def _() -> list[Patch]:
    def own(self: World, actor: Any, _: Any) -> Any:
        server = self.server(actor)
        return parts.UNREACHABLE if server is None else replace(server.gate_answer(), in_recovery=True)

    return [(World, "_ask_gate", own)]


@_bug("gate-falls-back", "nobody answers, so it is released", "S18", "S8", "S2", where=CUT_OFF)
def _() -> list[Patch]:
    original = emit.pass_gate

    def fall_back(standing: ports.Standing, wanted: Lsn, **options: Any) -> ports.Story[Release | None]:
        found = yield from original(standing, wanted, **options)
        return found or Release(standing.asker, wanted, None)

    return [(emit, "pass_gate", fall_back)]


@_bug("gate-compares-positions-only", "neither role nor timeline nor epoch is compared", "S8", "S2", "I9")
def _() -> list[Patch]:
    return [(gate, "decide", lambda answer, _, wanted: Gate.OPEN if answer.flushed >= wanted else Gate.BEHIND)]


@_bug(
    "gate-ignores-timeline",
    "a position that another timeline reached counts, though the standby has not replayed the new epoch yet",
    "S8",
    "S14",
    "S1",
    "S3",
    where={"more_faults": (plans.FREEZE, plans.DB_FAILOVER, plans.FREEZE, plans.TAKEOVER_BOTH)},
    seed=100,
)
def _() -> list[Patch]:
    return [_decide_with(timeline=False)]


@_bug(
    "gate-ignores-epoch",
    "positions of another epoch count",
    "S8",
    equivalent="every change of lineage is a change of the timeline, and that is compared",
)
def _() -> list[Patch]:
    return [_decide_with(epoch=False)]


def _decide_with(**without: bool) -> Patch:
    original = gate.decide

    def decide(answer: GateAnswer, asker: gate.Asker, wanted: Lsn) -> Gate:
        return original(replace(answer, **{name: getattr(asker, name) for name in without}), asker, wanted)

    return (gate, "decide", decide)


@_bug("gate-once-open-stays-open", "an emitter asks once and never again", "S8", "S2", where=CUT_OFF)
def _() -> list[Patch]:
    original = emit.pass_gate
    opened: dict[Any, bool] = {}

    def ask_once(standing: ports.Standing, wanted: Lsn, **options: Any) -> ports.Story[Release | None]:
        if opened.get(standing.asker):
            return (yield from _pretend(standing, wanted))
        found = yield from original(standing, wanted, **options)
        opened[standing.asker] = found is not None
        return found

    return [(emit, "pass_gate", ask_once)]


@_bug("gate-position-before-rows", "the log's position is taken before the outbox is read", "S8", "S2")
def _() -> list[Patch]:
    original = World._read_lane
    before: dict[Any, Lsn] = {}

    def read(self: World, actor: Any, effect: ports.ReadLane) -> Any:
        found = original(self, actor, effect)
        if isinstance(found, ports.LaneRead):
            earlier = before.get((id(self), actor.site), Lsn(0))
            before[id(self), actor.site] = found.position
            return ports.LaneRead(
                found.standing, min(earlier, found.position), found.incarnation, found.record, found.values
            )
        return found

    return [(World, "_read_lane", read)]


@_bug("submission-acknowledged-at-commit", "a client is told yes before the gate", "S1", "S14", where=CUT_OFF)
def _() -> list[Patch]:
    return [(submit, "pass_gate", _pretend)]


@_bug(
    "epoch-live-before-the-gate",
    "a renewed epoch goes to work before the other site knows it",
    "S7",
    "I21",
    "S2",
    "S16",
    "S6",
    where=INSIDE,
)
def _() -> list[Patch]:
    def skip(_: Any) -> ports.Story[None]:
        return
        yield

    return [(takeovers, "_gate_the_epoch", skip)]


@_bug(
    "hop-before-the-gate",
    "an inner topic is written after the local commit",
    "S2",
    where=HOPS,
    equivalent="the next stage's own segment lies behind it in the same log, and the orphan filter removes what a "
    "failover takes back: the pipelined rule of the theory",
)
def _() -> list[Patch]:
    return [(produce, "pass_gate", _pretend)]


@_bug(
    "hop-before-the-gate-unfiltered",
    "the same, without the orphan filter",
    "S2",
    where=HOPS | INSIDE,
)
def _() -> list[Patch]:
    return [(produce, "pass_gate", _pretend), _no_limits()]


# Epochs and cuts.


def _no_limits() -> Patch:
    def limits(self: epoch.Lineage, _: Any) -> dict[Epoch, dict[Any, Serial] | None]:
        every: dict[Any, Serial] = dict.fromkeys(range(64), Serial(1 << 40))
        return {row.epoch: every for row in self.rows[:-1]} | {self.current.epoch: None}

    return (epoch.Lineage, "limits", limits)


@_bug("orphan-filter-off", "records beyond the cut are taken", "S2", "S14", where=INSIDE)
def _() -> list[Patch]:
    return [_no_limits()]


@_bug("cut-too-high", "the cut covers what was lost", "S2", "S14", where=INSIDE)
def _() -> list[Patch]:
    original = World._cut

    def cut(self: World, server: Any) -> epoch.Cut:
        found = original(self, server)
        return epoch.Cut({key: Serial(serial + 9) for key, serial in found.serials.items()}, found.heads)

    return [(World, "_cut", cut)]


@_bug(
    "rows-between-promotion-and-epoch",
    "instructions are stored on a timeline that has no epoch yet, so the cut covers rows that came later",
    "S2",
    "S14",
    where=INSIDE,
)
def _() -> list[Patch]:
    original = World._submit

    def submit_anyhow(self: World, actor: Any, effect: ports.Submit) -> Any:
        original_works = normal_day.works_at
        normal_day.works_at = lambda lineage, site, _: lineage.current.site == site
        try:
            return original(self, actor, effect)
        finally:
            normal_day.works_at = original_works

    return [(World, "_submit", submit_anyhow)]


@_bug(
    "segments-between-promotion-and-epoch",
    "a batch is committed on a timeline that has no epoch yet",
    "S2",
    "S14",
    "S4",
    where=INSIDE,
)
def _() -> list[Patch]:
    original = World._commit

    def commit(self: World, actor: Any, effect: ports.Commit) -> Any:
        timeline = Timeline(self.servers[actor.site].timeline)
        fields = {name: getattr(effect, name) for name in effect.__struct_fields__} | {"timeline": timeline}
        return original(self, actor, ports.Commit(**fields))

    return [(World, "_commit", commit)]


@_bug("timeline-unnoticed", "a failover inside the site opens no epoch", "S2", "S14", "S8", "S10", where=INSIDE)
def _() -> list[Patch]:
    def by_site(lineage: epoch.Lineage, site: Any, timeline: Any) -> bool:
        return lineage.current.site == site and timeline is not None

    return [
        (epoch, "works_at", by_site),
        (normal_day, "works_at", by_site),
        (takeover, "works_at", by_site),
        (operators, "works_at", by_site),
        BUGS["segments-between-promotion-and-epoch"].patches()[0],
    ]


@_bug("epoch-without-site", "two sites can open the same epoch", "S7", "S2", "S6", where=BOTH_ALONE)
def _() -> list[Patch]:
    def shared(lineage: epoch.Lineage, _: int) -> Epoch:
        return epoch_of(generation_of(lineage.current.epoch) + 1, 0)

    return [(takeover, "next_epoch", shared)]


@_bug("heads-keep-their-epoch", "opening an epoch leaves the heads as they are", "S15")
def _() -> list[Patch]:
    return [(head.Head, "in_epoch", lambda self, _: self)]


@_bug("numbers-restart-at-takeover", "emission numbers begin again at 1", "S11", "L2", "S2", "S10")
def _() -> list[Patch]:
    return [(head.Head, "in_epoch", lambda self, new: replace(self, epoch=new, numbers={}))]


@_bug("vector-restarts-at-takeover", "the vector begins again at 0", "S12", "S10", "L2", "S2")
def _() -> list[Patch]:
    def restart(self: head.Head, new: Epoch) -> head.Head:
        return replace(self, epoch=new, vector=dict.fromkeys(self.vector, Serial(0)))

    return [(head.Head, "in_epoch", restart)]


@_bug(
    "exposed-copy-takes-over",
    "a site takes over though its copy says exposed",
    "I9",
    "I21",
    "S2",
    "S1",
    "S14",
    "I7",
    "S5",
    where=SITE_CHANGES,
)
def _() -> list[Patch]:
    original = takeover.plan_takeover

    def careless(view: takeover.SiteView, *, accept_loss: bool = False, cause: str = "takeover") -> Any:
        return original(view, accept_loss=True, cause=cause)

    return [(takeover, "plan_takeover", careless)]


@_bug("exposure-remembered", "an emitter remembers that it was exposed", "S8", "S18", "S2", where=SITE_CHANGES)
def _() -> list[Patch]:
    original = emit.pass_gate
    exposed: dict[Any, bool] = {}

    def remember(standing: ports.Standing, wanted: Lsn, **options: Any) -> ports.Story[Release | None]:
        if exposed.get(standing.asker):
            return Release(standing.asker, wanted, None)
        found = yield from original(standing, wanted, **options)
        exposed[standing.asker] = found is not None and found.answer is None
        return found

    return [(emit, "pass_gate", remember)]


@_bug(
    "rejoin-without-looking",
    "a database is replaced whatever it did meanwhile",
    "S16",
    "S7",
    "S1",
    "S2",
    "I9",
    "I21",
    "S14",
    where=SITE_CHANGES,
)
def _() -> list[Patch]:
    original = World._copy_database

    def copy(self: World, actor: Any, effect: ports.CopyDatabase) -> Any:
        return original(self, actor, ports.CopyDatabase(effect.site, effect.source, None))

    def nothing(*_: Any) -> None:
        return

    return [(World, "_copy_database", copy), (rejoin, "require_nothing_released", nothing)]


@_bug("tail-thrown-away", "what only a replaced copy had is not kept", "S16", where=CUT_OFF)
def _() -> list[Patch]:
    def drop(self: World, actor: Any, effect: ports.KeepTail) -> Any:
        return ports.Done(self.servers[effect.site].position)

    return [(World, "_keep_tail", drop)]


@_bug("old-topics-read-again", "a site that comes back uses its old topics", "S13", where=SITE_CHANGES)
def _() -> list[Patch]:
    def same(topic: Any, _: Any) -> Any:
        return topic

    from zerotail.simulation import judge

    return [(module, "topic_at", same) for module in (produce, stage, follow, takeovers, judge)]


# The journal.


@_bug("no-compare-and-set", "whoever comes writes", "S12", "S10", "S4", "S11", "S15")
def _() -> list[Patch]:
    return [_commit_if(lambda _, __: True)]


@_bug(
    "compare-and-set-without-epoch",
    "a batch of an older epoch joins",
    "S15",
    where={"more_faults": (plans.FREEZE, plans.SITE_DOWN, plans.EXPOSE, plans.FREEZE)},
)
def _() -> list[Patch]:
    return [_commit_if(lambda found, wanted: (found.segment, found.chain) == (wanted.segment, wanted.chain))]


@_bug(
    "compare-and-set-without-chain",
    "a head with the same number and another past passes",
    "S10",
    equivalent="in one database and one epoch a segment number has one past; another past means another timeline, "
    "hence another epoch; the chain is a second lock",
)
def _() -> list[Patch]:
    return [_commit_if(lambda found, wanted: (found.epoch, found.segment) == (wanted.epoch, wanted.segment))]


def _commit_if(same: Callable[[head.Token, head.Token], bool]) -> Patch:
    original = World._commit

    def commit(self: World, actor: Any, effect: ports.Commit) -> Any:
        server = self.server(actor)
        if server is not None:
            found = server.tables["heads"][effect.stage, effect.partition].token
            if same(found, effect.expected):
                fields = {name: getattr(effect, name) for name in effect.__struct_fields__}
                outbox = {
                    key: (
                        len(server.table("outbox").get(Lane(key[0], effect.partition, key[1]), ())) + 1,
                        values,
                    )
                    for key, (_, values) in effect.outbox.items()
                }
                effect = ports.Commit(**fields | {"expected": found, "outbox": outbox})
        return original(self, actor, effect)

    return (World, "_commit", commit)


@_bug(
    "fence-by-site-name",
    "a site that is active again takes its old processes for new ones",
    "S8",
    "S15",
    "S2",
    "S10",
    "I9",
    "S6",
    "S7",
    "S3",
)
def _() -> list[Patch]:
    def still_ours(sender: Any, _: Any, read: ports.LaneRead) -> bool:
        return read.standing.live_at(sender.site)

    return [
        _commit_if(lambda _, __: True),
        (emit, "_still_ours", still_ours),
        _decide_with(epoch=False, timeline=False),
    ]


@_bug(
    "indefinite-commit-repeated",
    "a commit without an answer is sent again, on whatever head there is",
    "S12",
    "S10",
    "S11",
    "S4",
)
def _() -> list[Patch]:
    def again(of: Any, moved: head.Head) -> ports.Story[Any]:
        effect = last_commit[of.name, of.partition]
        read = yield ports.ReadHead(of.name, of.partition)
        if not isinstance(read, ports.HeadRead):
            return ports.End.SUPERSEDED
        fields = {name: getattr(effect, name) for name in effect.__struct_fields__}
        stored = yield ports.Commit(**fields | {"expected": read.head.token})
        return moved if isinstance(stored, ports.Done) else ports.End.SUPERSEDED

    last_commit: dict[Any, ports.Commit] = {}
    original = World._commit

    def commit(self: World, actor: Any, effect: ports.Commit) -> Any:
        last_commit[effect.stage, effect.partition] = effect
        return original(self, actor, effect)

    def advance(*arguments: Any, **options: Any) -> Any:
        return original_advance(*arguments, **options)

    original_advance = head.advance
    return [(stage, "find_out", again), (World, "_commit", commit), (head, "advance", advance)]


@_bug(
    "indefinite-commit-taken-as-done",
    "a commit without an answer counts as done",
    "S1",
    equivalent="the next batch starts from a head that is not there, and the compare-and-set refuses it",
)
def _() -> list[Patch]:
    def done(_: Any, moved: head.Head) -> ports.Story[Any]:
        return moved
        yield

    return [(stage, "find_out", done)]


@_bug("state-behind-its-segment", "state is stored by the transaction after the one it belongs to", "S11")
def _() -> list[Patch]:
    original = World._commit
    kept: dict[Any, dict[str, bytes | None]] = {}

    def commit(self: World, actor: Any, effect: ports.Commit) -> Any:
        key = (id(self), effect.stage, effect.partition)
        fields = {name: getattr(effect, name) for name in effect.__struct_fields__}
        done = original(self, actor, ports.Commit(**fields | {"state": kept.get(key, {})}))
        if isinstance(done, ports.Done):
            kept[key] = dict(effect.state)
        return done

    return [(World, "_commit", commit)]


@_bug("handler-remembers", "a handler keeps something outside its state", "S11")
def _() -> list[Patch]:
    original = Ledger.apply
    seen: dict[int, int] = {}

    def apply(self: Ledger, record: Any, state: Any, given: Any) -> Any:
        emissions = original(self, record, state, given)
        seen[0] = seen.get(0, 0) + 1
        return [Emission(one.channel, [*one.value, seen[0] % 7], one.key) for one in emissions]

    return [(Ledger, "apply", apply)]


# Poison.

POISONED = {"poison": 2, "instructions": 16}


@_bug(
    "poison-decision-by-name-only",
    "a decision is carried out on whatever record has the producer and serial that it names",
    "I22",
    where=POISONED
    | {
        "producers": 1,
        "partitions": 1,
        "clients": 3,
        "two_stages": False,
        "horizon": 900,
        "more_faults": (plans.LINK_ONE_WAY, plans.TAKEOVER, plans.REJOIN) * 5,
        "spacing": 60,
        "lasting": 200,
    },
)
def _() -> list[Patch]:
    original_order, original_decide = apply.order_of, World.decide_poison

    def by_name(batch: Any, accepted: Any, decisions: Any) -> Any:
        order = original_order(batch, accepted, decisions)
        names = enumerate(zip(order.producers, order.serials, strict=True))
        return replace(order, decided=[(place, decisions[name]) for place, name in names if name in decisions])

    def decide(self: World, actor: Any, place: Any, seen: Poison, decision: Decision | None) -> Any:
        server = self.server(actor)
        known = server.table("poison").get((*place, seen.producer, seen.serial)) if server else None
        return original_decide(self, actor, place, known if isinstance(known, Poison) else seen, decision)

    return [(stage, "order_of", by_name), (World, "decide_poison", decide)]


@_bug("poison-decision-not-journaled", "a decision is carried out and not stored in the segment", "S11", where=POISONED)
def _() -> list[Patch]:
    original = head.advance

    def advance(before: Any, **options: Any) -> Any:
        return original(before, **options | {"decided": ()})

    return [(head, "advance", advance)]


@_bug(
    "poison-passed-over",
    "a record at which the handler fails is taken without the handler, and nobody is asked",
    "S11",
    "S17",
    where=POISONED,
)
def _() -> list[Patch]:
    original = stage._apply

    def go_on(of: Any, before: Any, order: Any, hint: Any, decided_at: int) -> ports.Story[Any]:
        applied, spoiled = yield from original(of, before, order, hint, decided_at)
        while spoiled is not None and not isinstance(applied, ports.End):
            place = 0 if applied is None else len(applied.segment.digests)
            passed = (place, Decision(Remedy.SKIP, order.digests[place]))
            order = replace(order, decided=[*order.decided, passed])
            applied, spoiled = yield from original(of, before, order, hint, decided_at)
        return applied, spoiled

    return [(stage, "_apply", go_on), *BUGS["poison-decision-not-journaled"].patches()]


@_bug(
    "poison-decided-by-the-stage",
    "a stage that fails at a record decides by itself to skip it, and says so in the segment",
    "S17",
    where=POISONED,
)
def _() -> list[Patch]:
    return BUGS["poison-passed-over"].patches()[:1]


@_bug("poison-leaves-traces", "what a failing record did to the state is stored", "S11", "S17", where=POISONED)
def _() -> list[Patch]:
    original = apply.apply_in_order
    left: dict[Any, dict[str, Any]] = {}

    def keep(handler: Any, records: Any, state: Any, keys: Any, at: int, chain: Any, of: Any) -> Any:
        try:
            said = original(handler, records, state, keys, at, chain, of)
        except apply.FailedError:
            left[id(handler), chain] = state._values
            raise
        state._values.update(left.pop((id(handler), chain), {}))
        return said

    return [(apply, "apply_in_order", keep)]


@_bug(
    "poison-skipped-and-applied",
    "a record that is to be skipped is given to the handler after all, if that can take it by now",
    "S17",
    where=POISONED,
)
def _() -> list[Patch]:
    original = apply.open_order

    def hopeful(handler: Any, first: Any, order: Any) -> Any:
        replaced = [one for one in order.decided if one[1].remedy is Remedy.REPLACE]
        try:
            opened = original(handler, first, replace(order, decided=replaced))
            for record in opened.records:
                state = apply.State({})
                state.allow(handler.keys(record))
                handler.apply(record, state, Given(0, b"", record.position))
        except Exception:  # noqa: BLE001 - whatever a handler raises
            return original(handler, first, order)
        return replace(opened, order=order)

    return [(stage, "open_order", hopeful), (replay, "open_order", hopeful)]


# Admission and producers.


def _admit(change: Callable[[Arrivals, Any, Any, Admission], Admission]) -> Patch:
    original = admission.admit

    def admit(arrivals: Arrivals, vector: Any, limits: Any) -> Admission:
        return change(arrivals, vector, limits, original(arrivals, vector, limits))

    return (admission, "admit", admit)


@_bug("repeat-applied", "a record that was taken before is taken again", "S12", "S11", "S2")
def _() -> list[Patch]:
    def change(arrivals: Arrivals, vector: Any, _: Any, found: Admission) -> Admission:
        accepted = [
            index
            for index, producer in enumerate(arrivals.producers)
            if index in found.accepted or (producer in vector and arrivals.serials[index] <= vector[producer])
        ]
        return replace(found, accepted=accepted)

    return [_admit(change)]


@_bug("gap-skipped", "a record is taken though one before it is missing", "S4", "S12")
def _() -> list[Patch]:
    def change(arrivals: Arrivals, vector: Any, limits: Any, found: Admission) -> Admission:
        reached, accepted = dict(vector), []
        for index, (producer, serial) in enumerate(zip(arrivals.producers, arrivals.serials, strict=True)):
            if producer in reached and serial > reached[producer] and arrivals.epochs[index] == max(limits):
                reached[producer] = serial
                accepted.append(index)
        return replace(found, accepted=accepted, vector=reached, gaps={})

    return [_admit(change)]


@_bug(
    "foreign-record-applied",
    "a record without our header is taken",
    "S2",
    "S12",
    "S10",
    "S4",
    where={"more_faults": (plans.KAFKA_FOREIGN,) * 4},
)
def _() -> list[Patch]:
    def change(arrivals: Arrivals, vector: Any, _: Any, found: Admission) -> Admission:
        taken = [index for index, producer in enumerate(arrivals.producers) if producer == 0]
        return replace(found, accepted=sorted([*found.accepted, *taken]))

    return [_admit(change)]


@_bug(
    "standing-vector-ignored",
    "a producer does not notice that its last records never arrived",
    "L2",
    where={"more_faults": (plans.KAFKA_TRUNCATE,) * 6},
)
def _() -> list[Patch]:
    return [(produce, "STANDING_READS", 1 << 30)]


@_bug(
    "gap-not-reported",
    "a stage asks nobody to send again",
    "L2",
    equivalent="a producer sees the vector stand still and sends again by itself, only later",
)
def _() -> list[Patch]:
    def ignore(self: World, actor: Any, effect: Any) -> Any:
        return parts.DONE

    return [(World, "_request_again", ignore)]


@_bug(
    "lost-answer-of-kafka-taken-as-sent",
    "a producer believes that records without an acknowledgement arrived",
    "L2",
    equivalent="the stage sees a gap, or the vector stands still: they are sent again either way",
)
def _() -> list[Patch]:
    original = produce.produce

    def believing(feed: Any, site: Any, **options: Any) -> ports.Story[Any]:
        inner = original(feed, site, **options)
        result = None
        while True:
            try:
                effect = inner.send(result)
            except StopIteration as stop:
                return stop.value
            result = yield effect
            if isinstance(effect, ports.SendRecords):
                result = ports.Done()

    from zerotail.simulation import run

    return [(run, "produce", believing)]


@_bug("submission-stored-twice", "a repeated submission is a new instruction", "S3", "S14")
def _() -> list[Patch]:
    original = World._submit

    def submit_again(self: World, actor: Any, effect: ports.Submit) -> Any:
        server = self.server(actor)
        if server is not None and not server.in_recovery:
            server.table("ids").pop(effect.id, None)
        return original(self, actor, effect)

    return [(World, "_submit", submit_again)]


@_bug(
    "idle-stage-never-looks",
    "a stage without records never finds out that another one took its place",
    "L2",
    where=SITE_CHANGES,
)
def _() -> list[Patch]:
    return [(stage, "IDLE_POLLS", 1 << 30)]


# Emission.


@_bug("acknowledged-before-sent", "the acknowledgement is noted before the batch is sent", "S5", "I9", "S1")
def _() -> list[Patch]:
    original = emit._send_batch

    def send(sender: Any, claim: Any, resume: Resume, read: ports.LaneRead) -> ports.Story[Any]:
        last = EmissionNumber(resume.next_number + len(read.values) - 1)
        yield ports.RecordAcknowledged(sender.lane, claim.epoch, claim.incarnation, last)
        return (yield from original(sender, claim, resume, read))

    return [(emit, "_send_batch", send)]


@_bug("lost-answer-taken-as-accepted", "a batch without an answer counts as received", "S5", "S1", "I9", "L2")
def _() -> list[Patch]:
    original = emit._send_batch

    def send(sender: Any, claim: Any, resume: Resume, read: ports.LaneRead) -> ports.Story[Any]:
        inner = original(sender, claim, resume, read)
        result = None
        while True:
            try:
                effect = inner.send(result)
            except StopIteration as stop:
                return stop.value
            result = yield effect
            if isinstance(effect, ports.SendEmissions) and isinstance(result, ports.Indefinite | ports.Unreachable):
                result = ports.Accepted(EmissionNumber(effect.first + len(effect.values) - 1))

    return [(emit, "_send_batch", send)]


def _resume(change: Callable[..., Any]) -> Patch:
    original = receiver.plan_resume

    def plan(lane: Any, of: ReceiverClass, record: Any, welcome: Any, policy: Any) -> Any:
        return change(original, lane, of, record, welcome, policy)

    return (receiver, "plan_resume", plan)


@_bug("resume-at-acknowledged", "an R2 receiver is not asked where it stands", "L2", "S6", where=R2)
def _() -> list[Patch]:
    def change(_: Any, __: Any, ___: Any, record: Any, *____: Any) -> Resume:
        return Resume(EmissionNumber(record.acknowledged + 1), record.journaled)

    return [_resume(change)]


@_bug("resume-at-journaled", "a sender goes on behind everything journaled", "S5", "S1", "L2")
def _() -> list[Patch]:
    def change(_: Any, __: Any, ___: Any, record: Any, *____: Any) -> Resume:
        return Resume(EmissionNumber(record.journaled + 1), EmissionNumber(0))

    return [_resume(change)]


@_bug("resume-one-too-late", "a sender that starts skips one number", "S5", "L2", where=R1)
def _() -> list[Patch]:
    def change(original: Any, *arguments: Any) -> Any:
        found = original(*arguments)
        if isinstance(found, Resume) and found.next_number > 1:
            return Resume(EmissionNumber(found.next_number + 1), found.doubtful_until)
        return found

    return [_resume(change)]


@_bug("no-claim-at-the-receiver", "a sender begins without telling the receiver", "S7", "S6", where=R2)
def _() -> list[Patch]:
    def silent(self: World, actor: Any, effect: ports.ClaimAtReceiver) -> Any:
        return receiver.Welcome(self.receivers[effect.lane].last, None)

    return [(World, "_claim_at_receiver", silent)]


@_bug(
    "receiver-takes-older-senders",
    "the receiver does not keep its contract",
    "S6",
    where=R2 | {"more_faults": (plans.FREEZE,) * 6},
)
def _() -> list[Patch]:
    original = Receiver._in_order

    def in_order(self: Receiver, time: int, site: str, effect: ports.SendEmissions) -> Any:
        claim, self.claim = self.claim, None
        try:
            return original(self, time, site, effect)
        finally:
            self.claim = claim

    return [(Receiver, "_in_order", in_order)]


@_bug(
    "replaced-sender-not-noticed",
    "a sender believes what the receiver told it long ago",
    "I9",
    where=R2 | {"more_faults": (plans.FREEZE,) * 6},
)
def _() -> list[Patch]:
    def still_ours(sender: Any, claim: Any, read: ports.LaneRead) -> bool:
        return read.standing.epoch == claim.epoch and read.standing.live_at(sender.site)

    return [(emit, "_still_ours", still_ours)]


@_bug("two-senders-one-incarnation", "a start is not counted", "S3", "S6", where=R3)
def _() -> list[Patch]:
    original = World._claim_lane

    def claim(self: World, actor: Any, effect: ports.ClaimLane) -> Any:
        found = original(self, actor, effect)
        if isinstance(found, ports.LaneClaimed):
            server = self.servers[actor.site]
            row = server.table("lanes")[effect.lane]
            server.table("lanes")[effect.lane] = (row[0], 1, row[2], row[3])
            return ports.LaneClaimed(found.standing, type(found.incarnation)(1), found.position)
        return found

    return [(World, "_claim_lane", claim)]


# Receivers that can do nothing.


@_bug("intent-missing", "an R3 batch is sent without saying so before", "S3", where=R3)
def _() -> list[Patch]:
    def forget(self: World, actor: Any, effect: ports.RecordIntent) -> Any:
        return ports.Done(self.servers[actor.site].position)

    return [(World, "_record_intent", forget)]


@_bug(
    "intent-before-the-gate",
    "the intent is stored, and nobody waits until the other site has it",
    "S3",
    where=R3 | SITE_CHANGES,
)
def _() -> list[Patch]:
    original = World._record_intent

    def early(self: World, actor: Any, effect: ports.RecordIntent) -> Any:
        position = self.servers[actor.site].position
        found = original(self, actor, effect)
        return ports.Done(Lsn(max(0, position - 3))) if isinstance(found, ports.Done) else found

    return [(World, "_record_intent", early)]


@_bug(
    "doubt-not-listed",
    "numbers in doubt are sent again and nobody is told",
    "S3",
    where=R3 | {"policy": DoubtPolicy.RESEND},
)
def _() -> list[Patch]:
    def forget(self: World, actor: Any, effect: ports.RecordDoubts) -> Any:
        return ports.Done(self.servers[actor.site].position)

    return [(World, "_record_doubts", forget)]


@_bug("doubt-taken-as-received", "numbers in doubt are dropped", "S1", "S5", where=R3)
def _() -> list[Patch]:
    def change(_: Any, __: Any, of: ReceiverClass, record: Any, *___: Any) -> Resume:
        return Resume(EmissionNumber(record.intended + 1), EmissionNumber(0))

    return [_resume(change)]


@_bug(
    "doubt-settled-under-a-living-sender",
    "an operator settles a number that a sender intends at this moment",
    "S3",
    "S1",
    "S5",
    where=R3 | {"policy": DoubtPolicy.HOLD},
)
def _() -> list[Patch]:
    def settle(self: World, actor: Any, effect: ports.SettleDoubts) -> Any:
        server = self.server(actor)
        if server is None or server.in_recovery:
            return parts.UNREACHABLE
        row = server.table("lanes")[effect.lane]
        settled = (row[0], row[1], effect.received, effect.received)
        return self._store(actor, server, [(normal_day.SET, "lanes", effect.lane, settled)], parts.DONE)

    return [(World, "_settle_doubts", settle), (operators.Operators, "_sender_frozen", lambda *_: False)]


# The follower.


@_bug("follower-ignores-the-order", "the standby's topic is filled producer by producer", "S13")
def _() -> list[Patch]:
    original = follow.records_behind

    def by_producer(journal: ports.JournalRead) -> ports.Batch:
        batch = original(journal)
        rows = sorted(
            zip(batch.producers, batch.serials, batch.epochs, batch.digests, batch.values, strict=True),
            key=lambda row: (-row[0], row[1]),
        )
        columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
        return ports.Batch(*columns)

    return [(follow, "records_behind", by_producer)]


@_bug(
    "exposed-while-commits-wait",
    "an exposed epoch is opened while a commit that waits for the lost site holds the head",
    "L2",
    where={"synchronous": True, "more_faults": (plans.SITE_DOWN, plans.EXPOSE, plans.EXPOSE), "spacing": 8},
)
def _() -> list[Patch]:
    def nothing(self: World, actor: Any, effect: ports.StopWaiting) -> Any:
        return parts.DONE

    return [(World, "_stop_waiting", nothing)]
