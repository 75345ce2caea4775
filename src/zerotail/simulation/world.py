"""The simulated world: executes the effects of the protocol on two sites, their links and the outside.

What may go wrong around an effect (a lost request, a lost answer, a request that arrives late, a crash
before or after) is the business of `schedule.py`; the vices of the parts themselves are in `postgres.py`,
`kafka.py` and `outside.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zerotail import ports
from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.head import first_head
from zerotail.core.identity import (
    Timeline,
    epoch_of,
)
from zerotail.simulation.bad_day import BadDay
from zerotail.simulation.normal_day import NormalDay
from zerotail.simulation.parts import (
    BLOCKED,
    EAST,
    INDEFINITE,
    NUMBER,
    WEST,
    Actor,
    Topology,
)
from zerotail.simulation.postgres import SET, Write


class World(NormalDay, BadDay):
    """Two sites and the outside."""

    def __init__(self, topology: Topology, *, synchronous: bool, fence: bool = False) -> None:
        super().__init__(topology, synchronous=synchronous, fence=fence)
        self._handlers: dict[type[ports.Effect], Callable[[Actor, Any], Any]] = {
            ports.Submit: self._submit,
            ports.ReadFeed: self._read_feed,
            ports.SendRecords: self._send_records,
            ports.PollRecords: self._poll_records,
            ports.ReadLogEnd: self._read_log_end,
            ports.ReadHead: self._read_head,
            ports.ClaimHead: self._claim_head,
            ports.RecordPoison: self._record_poison,
            ports.LoadState: self._load_state,
            ports.Commit: self._commit,
            ports.RequestAgain: self._request_again,
            ports.AskGate: self._ask_gate,
            ports.ReadEnd: self._read_end,
            ports.ReadPosition: self._read_position,
            ports.EndLife: self._end_life,
            ports.BeginLife: self._begin_life,
            ports.ClaimLane: self._claim_lane,
            ports.ReadLane: self._read_lane,
            ports.RecordIntent: self._record_intent,
            ports.RecordAcknowledged: self._record_acknowledged,
            ports.RecordDoubts: self._record_doubts,
            ports.SettleDoubts: self._settle_doubts,
            ports.ClaimAtReceiver: self._claim_at_receiver,
            ports.SendEmissions: self._send_emissions,
            ports.ObserveSite: self._observe_site,
            ports.CompareCopies: self._compare_copies,
            ports.FenceSite: self._fence_site,
            ports.Promote: self._promote,
            ports.StopWaiting: self._stop_waiting,
            ports.OpenEpoch: self._open_epoch,
            ports.ChangeEpoch: self._change_epoch,
            ports.StoreStart: self._store_start,
            ports.ReadJournal: self._read_journal,
            ports.FindPlace: self._find_place,
            ports.RecordStep: self._record_step,
            ports.ObserveDrained: self._observe_drained,
            ports.ShutDown: self._shut_down,
            ports.KeepTail: self._keep_tail,
            ports.CopyDatabase: self._copy_database,
            ports.RecordRejoined: self._record_rejoined,
        }
        self._begin()

    def _begin(self) -> None:
        """The first epoch at east, and west as its standby."""
        epoch = epoch_of(1, NUMBER[EAST])
        row = EpochRow(epoch, EAST, Timeline(1), Durability.GATED, Phase.LIVE, Cut())
        east = self.servers[EAST]
        writes: list[Write] = [(SET, "lineage", "", Lineage((row,))), *east.begin_life()]
        writes += [
            (SET, "heads", key, first_head(epoch, self.topology.producers[stage.name]))
            for key, stage in self._stages.items()
        ]
        east.write(writes, wait=False)
        self.servers[EAST].names = self.synchronous
        self.servers[WEST].copy_from(self.servers[EAST])
        self.witness.opened(self.moment, row)

    def execute(self, actor: Actor, effect: ports.Effect) -> Any:
        """The result of an effect, or `BLOCKED`."""
        self.moment += 1
        if actor.waiting is not None:
            waiting, result = actor.waiting
            if not waiting.finished:
                return BLOCKED
            actor.waiting = None
            return result if waiting.succeeded else INDEFINITE
        return self._handlers[type(effect)](actor, effect)
