"""Bugs of the journal and its compare-and-set."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zerotail import ports
from zerotail.core import head
from zerotail.core.emission import Lane
from zerotail.flow import emit, stage
from zerotail.handler import Emission
from zerotail.simulation import plan as plans
from zerotail.simulation.bugs.gates import decide_with
from zerotail.simulation.bugs.planting import PLAIN, Patch, bug
from zerotail.simulation.topology import Ledger
from zerotail.simulation.world import World


@bug("no-compare-and-set", "whoever comes writes", "S12", "S10", "S4", "S11", "S15")
def _() -> list[Patch]:
    return [_commit_if(lambda _, __: True)]


@bug(
    "compare-and-set-without-epoch",
    "a batch of an older epoch joins",
    "S15",
    where=PLAIN | {"more_faults": (plans.FREEZE, plans.SITE_DOWN, plans.EXPOSE, plans.FREEZE)},
    seed=215,
)
def _() -> list[Patch]:
    return [_commit_if(lambda found, wanted: (found.segment, found.chain) == (wanted.segment, wanted.chain))]


@bug(
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


@bug(
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
        decide_with(epoch=False, timeline=False),
    ]


@bug(
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


@bug(
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


@bug("state-behind-its-segment", "state is stored by the transaction after the one it belongs to", "S11")
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


@bug("handler-remembers", "a handler keeps something outside its state", "S11")
def _() -> list[Patch]:
    original = Ledger.apply
    seen: dict[int, int] = {}

    def apply(self: Ledger, record: Any, state: Any, given: Any) -> Any:
        emissions = original(self, record, state, given)
        seen[0] = seen.get(0, 0) + 1
        return [Emission(one.channel, [*one.value, seen[0] % 7], one.key) for one in emissions]

    return [(Ledger, "apply", apply)]
