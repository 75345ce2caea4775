"""A whole run, from the first declaration to the reading of both sites."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from histories.database import (
    FIRST,
    HOP,
    SECOND,
    SITES,
    Item,
    Row,
)
from histories.disasters import Disasters
from zerotail.core.identity import (
    Offset,
    PartitionNumber,
    SiteName,
)
from zerotail.drill.checker import Expect
from zerotail.drill.history import (
    ChannelDeclared,
    FinalInstruction,
    FinalSegment,
    FinalSite,
    FinalState,
    LimitBegan,
    LimitReached,
    Measured,
    MirrorCopy,
    MirrorSource,
    StageDeclared,
    SubmitUnknown,
)


class World(Disasters):
    def declare(self) -> None:
        for stage, producers in self.takes.items():
            self.say("operator", StageDeclared(stage=stage, producers=tuple(producers)))
        for channel, kind in self.channels.items():
            declared = ChannelDeclared(
                channel=channel,
                stage=self.stage_of[channel],
                receiver=kind,  # type: ignore[arg-type]
                window=self.window if kind == "R3" else None,
            )
            self.say("operator", declared)
        if self.two_stages:
            hop = ChannelDeclared(channel=HOP, stage=FIRST, receiver="stage", target_stage=SECOND)
            self.say("operator", hop)

    def run(self) -> None:
        r = self.random
        self.declare()
        self.open_epoch("start", "gated")
        self.start_sender()
        self.keep_busy()
        for disaster in r.choices(self.disasters(), k=r.randint(1, 3)):
            self.work(r.randint(5, 30))
            if self.deposed_log is not None:
                self.rejoin()
            disaster()
        self.work(r.randint(5, 20))
        self.leave_other = r.choice(["standby", "deposed", "lost"]) if self.deposed_log else "standby"
        if self.deposed_log is not None and self.leave_other == "standby":
            self.rejoin()
        self.drain()
        self.read_sites()
        self.mirror()

    def disasters(self) -> list[Callable[[], None]]:
        return [
            self.takeover,
            self.lose_standby,
            self.handover,
            self.restart_sender,
            self.change_timeline,
        ]

    def drain(self) -> None:
        self.say("nemesis", LimitBegan(rule="L2", what="drain", limit=1_000_000))
        self.keep_busy()
        while sum(self.apply(s, p) for s in self.takes for p in self.partitions):
            self.flushed = self.lsn if self.in_force else self.flushed
        self.flushed = self.lsn if self.in_force else self.flushed
        while any(self.sender.sent[s] < len(self.owed[s]) for s in self._streams()):
            self.emit()
        self.say("nemesis", LimitReached(rule="L2", what="drain"))
        self.say("lab", Measured(rule="L3", what="oldest open transaction", value=0.4, limit=10))
        self.say("lab", Measured(rule="L6", what="processor share of the waiting emitter", value=1, limit=5))
        self.say("lab", Measured(rule="L7", what="seconds waited without a reason", value=0, limit=2))

    def read_sites(self) -> None:
        self._read(self.site, "active", self.log)
        other = SITES[1 - self.active]
        match self.leave_other:
            case "standby":
                self._read(other, "standby", self.log)
            case "deposed":
                assert self.deposed_log is not None
                self._read(other, "deposed", self.deposed_log)
                self.find_divergent("deposed")
            case _:
                self.say("reader", FinalSite(site=other, role="lost"))
        for (stage, partition), segments in self.journal.items():
            for segment in segments[-1:] + self.random.sample(segments, min(2, len(segments))):
                digest = self._digest(f"state {segment.chain}")
                for site in (self.site, other) if self.leave_other == "standby" else (self.site,):
                    for source in ("database", "replay"):
                        state = FinalState(
                            site=site,
                            stage=stage,
                            partition=partition,
                            segment=segment.segment,
                            digest=digest,
                            source=source,
                        )
                        self.say("reader", state)

    def _read(self, site: SiteName, role: str, log: list[tuple[int, Item]]) -> None:
        for _, item in log:
            if isinstance(item, Row):
                row = FinalInstruction(
                    site=site,
                    producer=item.producer,
                    partition=item.partition,
                    serial=item.serial,
                    id=item.id,
                    digest=item.digest,
                )
                self.say("reader", row)
            elif isinstance(item, FinalSegment):
                self.say("reader", replace(item, site=site))
        epochs = tuple(item for _, item in log if isinstance(item, int))
        self.say("reader", FinalSite(site=site, role=role, epochs=epochs))  # type: ignore[arg-type]

    def mirror(self) -> None:
        offset = Offset(0)
        count = self.random.randint(3, 8)
        copied = self.random.randint(2, count)
        for index in range(count):
            digest = self._digest(f"mirrored {index}")
            source = MirrorSource(mirror="audit", partition=PartitionNumber(0), offset=offset, digest=digest)
            self.say("reader", source)
            if index < copied:
                copy = MirrorCopy(
                    mirror="audit",
                    partition=PartitionNumber(0),
                    offset=Offset(index * 2),
                    source_offset=offset,
                    digest=digest,
                )
                self.say("reader", copy)
            offset = Offset(offset + self.random.randint(1, 2))

    def expectation(self) -> Expect:
        """What this run has certainly shown."""
        return Expect(
            faults=self.faults,
            work_during_faults=False,
            states=("unknown outcome",) if any(type(e) is SubmitUnknown for e in self.events) else (),
            limits=("L2", "L3", "L6", "L7"),
            standby=self.leave_other == "standby",
            work=False,
            fenced_process_limit=20,
        )
