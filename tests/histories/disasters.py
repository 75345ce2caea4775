"""Epochs, disasters and how they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from histories.database import (
    SITES,
)
from histories.sending import Sending
from zerotail.core.identity import (
    Lsn,
    Position,
    Timeline,
    epoch_of,
)
from zerotail.drill.history import (
    Cut,
    DivergentSegment,
    EpochOpened,
    FaultBegan,
    FaultEnded,
    FinalSegment,
    LimitBegan,
    LimitReached,
    ModeChanged,
    ReplicationChanged,
    SubmitUnknown,
)


class Disasters(Sending):
    # Epochs, disasters and their end.

    def open_epoch(self, cause: str, mode: str) -> None:
        self.generation += 1
        self.epoch = epoch_of(self.generation, self.active)
        self.mode = mode
        cuts = tuple(
            Cut(
                stage,
                partition,
                segments[-1].segment,
                Position(segments[-1].first_position + len(segments[-1].inputs)),
                segments[-1].chain,
            )
            for (stage, partition), segments in self.journal.items()
            if segments
        )
        self.commit(self.epoch)
        opened = EpochOpened(
            epoch=self.epoch,
            site=self.site,
            mode=mode,  # type: ignore[arg-type]
            cause=cause,  # type: ignore[arg-type]
            timeline=Timeline(self.timeline),
            cuts=cuts,
        )
        self.say("operator", opened)
        if mode == "gated":
            self.flushed = self.lsn

    def retire_sender(self) -> None:
        zombie = self.sender
        zombie.known = {stream: [digest for digest, _ in owed] for stream, owed in self.owed.items()}
        self.zombies.append(zombie)

    def takeover(self) -> None:
        self.faults += 1
        fault = f"f{self.faults}"
        site = self.site
        began = FaultBegan(fault=fault, action="kill -9", target=site, bit=True, evidence="pids gone")
        self.say("nemesis", began)
        self.say("operator", LimitBegan(rule="L1", what=f"takeover {fault}", limit=10_000))
        self.retire_sender()
        self.deposed_log = self.log
        self.lose_everything_behind(self.flushed)
        self.active = 1 - self.active
        self.timeline += 1
        self.in_force = False
        self.open_epoch("takeover", "exposed")
        self.start_sender()
        self.work(self.random.randint(2, 15))
        self.keep_busy()
        self.say("operator", LimitReached(rule="L1", what=f"takeover {fault}"))
        self.fault_to_end = fault

    def lose_everything_behind(self, lsn: int) -> None:
        self.log = [(place, item) for place, item in self.log if place <= lsn]
        self.unknown += self.pending
        for submission in self.pending:
            self.say("client", SubmitUnknown(id=submission.id, reason="reset"))
        self.pending = []
        self._fold()

    def find_divergent(self, found: Literal["deposed", "audit"]) -> None:
        """What only the deposed site has, as it is found there, or as it is kept."""
        assert self.deposed_log is not None
        ours = {item.chain for _, item in self.log if isinstance(item, FinalSegment)}
        theirs = [item for _, item in self.deposed_log if isinstance(item, FinalSegment)]
        for segment in theirs:
            if segment.chain not in ours:
                divergent = DivergentSegment(
                    site=SITES[1 - self.active],
                    stage=segment.stage,
                    partition=segment.partition,
                    segment=segment.segment,
                    epoch=segment.epoch,
                    chain=segment.chain,
                    found=found,
                    emissions=segment.emissions,
                )
                self.say("reader", divergent)

    def rejoin(self) -> None:
        """The deposed site comes back as standby; what only it had is kept for audit."""
        self.find_divergent("deposed")
        self.find_divergent("audit")
        self.deposed_log = None
        self.say("nemesis", FaultEnded(fault=self.fault_to_end))
        self.attach()

    def attach(self) -> None:
        self.in_force = True
        self.nobody_knows_what_was_sent = False
        self.say("database", ReplicationChanged(site=self.site, in_force=True))
        self.flushed = self.lsn
        if self.mode == "exposed":
            self.mode = "gated"
            self.say("operator", ModeChanged(epoch=self.epoch, site=self.site, mode="gated"))
        self.keep_busy()

    def lose_standby(self) -> None:
        """The other site is cut off for a while; sometimes an operator states that it is out."""
        self.faults += 1
        fault = f"f{self.faults}"
        self.say("nemesis", FaultBegan(fault=fault, action="cut", target="link", bit=True, evidence="no ack"))
        self.flushed = self.random.randint(self.flushed, self.lsn)
        sent = self.random.choice([self.flushed, self.lsn])
        self.in_force = False
        self.nobody_knows_what_was_sent = self.random.random() < 0.3
        lsn_sent = None if self.nobody_knows_what_was_sent else Lsn(sent)
        away = ReplicationChanged(site=self.site, in_force=False, lsn_sent=lsn_sent)
        self.say("database", away)
        self.work(self.random.randint(2, 10))
        if self.random.random() < 0.5:
            self.mode = "exposed"
            changed = ModeChanged(epoch=self.epoch, site=self.site, mode="exposed", operator=True)
            self.say("operator", changed)
            self.work(self.random.randint(2, 10))
            self.keep_busy()
        else:
            self.submit()
        self.attach()
        self.say("nemesis", FaultEnded(fault=fault))
        self.keep_busy()

    def restart_sender(self) -> None:
        self.faults += 1
        fault = f"f{self.faults}"
        target = self.sender.process
        self.say("nemesis", FaultBegan(fault=fault, action="kill -9", target=target, bit=True, evidence="pid gone"))
        self.crash_sender()
        self.start_sender()
        self.keep_busy()
        self.say("nemesis", FaultEnded(fault=fault))
        self.keep_busy()

    def handover(self) -> None:
        self.say("operator", LimitBegan(rule="L5", what=f"handover {self.generation}", limit=10_000))
        self.flushed = self.lsn
        self.retire_sender()
        self.active = 1 - self.active
        self.timeline += 1
        self.open_epoch(self.random.choice(["handover", "failback"]), "gated")
        self.start_sender()
        self.keep_busy()
        self.say("operator", LimitReached(rule="L5", what=f"handover {self.generation - 1}"))

    def change_timeline(self) -> None:
        """A replica inside the site takes over; it has at least what the other site has."""
        kept = self.random.randint(self.flushed, self.lsn)
        self.retire_sender()
        self.lose_everything_behind(kept)
        self.timeline += 1
        self.open_epoch("timeline", "gated")
        self.start_sender()
        self.keep_busy()

    # Work around them.

    def work(self, steps: int) -> None:
        steps_of: list[Callable[[], object]] = [
            self.submit,
            self.answer,
            self.answer,
            self.apply,
            self.flush,
            self.emit,
            self.haunt,
        ]
        for _ in range(steps):
            self.random.choice(steps_of)()
