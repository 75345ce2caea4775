"""Senders and the receiver: releases, claims, attempts, doubts and zombies."""

from __future__ import annotations

from msgspec.structs import replace

from histories.database import (
    HOP,
    Sender,
    Stream,
)
from histories.flow import Flow
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Incarnation,
    Lsn,
    Timeline,
)
from zerotail.drill.history import (
    ChannelClaimed,
    DoubtListed,
    EmissionAttempted,
    ProcessEnded,
    ProcessStarted,
    Released,
)


class Sending(Flow):
    # Sending and receiving.

    def start_sender(self) -> None:
        self.incarnation += 1
        self.sender = Sender(self.site, self.epoch, Incarnation(self.incarnation))
        s = self.sender
        started = ProcessStarted(process=s.process, site=s.site, epoch=s.epoch, incarnation=s.incarnation)
        self.say("lab", started)
        for channel, kind in self.channels.items():
            if kind == "R2":
                self.claim(s, channel)
                if self.random.random() < 0.1:  # it lost the answer and asks again
                    self.claim(s, channel)
        for stream, last in self.received.items():
            forgotten = self.random.randint(0, 2) if self.channels[stream[0]] in ("R0", "R1") else 0
            s.sent[stream] = max(0, last - forgotten)

    def claim(self, sender: Sender, channel: ChannelName) -> str:
        """Claim all partitions of a channel, in one step or one by one."""
        rank = (sender.epoch, sender.incarnation)
        newer = rank >= self.claims.get(channel, (0, 0))
        if newer:
            self.claims[channel] = rank
        for partition in self.partitions if self.claims_by_partition else [None]:
            claimed = ChannelClaimed(
                channel=channel,
                epoch=sender.epoch,
                incarnation=sender.incarnation,
                site=sender.site,
                answer="accepted" if newer else "older-epoch",
                partition=partition,
            )
            self.say("receiver", claimed)
        return claimed.answer

    def crash_sender(self) -> None:
        """The sender dies with one number of an R3 channel in flight; the next one lists it as a doubt."""
        self.keep_busy()
        for stage in self.takes:
            self.apply(stage)
        self.flush()
        self.release()
        for stream in [s for s in self._streams() if self.channels[s[0]] == "R3"]:
            number = self.sender.sent[stream] + 1
            if number <= self.sender.released[stream] and self.random.random() < 0.7:
                arrived = self.random.random() < 0.5
                if arrived:
                    self._attempt(self.sender, stream, number)
                self._doubt(stream, number)
                if self.random.random() < 0.5:
                    self.received[stream] = number - 1  # to be sent again
                else:
                    self.received[stream] = number
        self.say("lab", ProcessEnded(process=self.sender.process, exit_code=-9, reason="killed"))

    def _doubt(self, stream: Stream, number: int) -> None:
        listed = DoubtListed(
            channel=stream[0],
            partition=stream[1],
            target_partition=stream[2],
            number=EmissionNumber(number),
            epoch=self.sender.epoch,
            incarnation=self.sender.incarnation,
        )
        self.say("emitter", listed)

    def _streams(self) -> list[Stream]:
        return [stream for stream in list(self.owed) if stream[0] != HOP]

    def release(self) -> None:
        s = self.sender
        if self.nobody_knows_what_was_sent and self.mode == "gated":
            return
        for stream in self._streams():
            through = sum(lsn <= self.durable for _, lsn in self.owed[stream])
            if through > s.released[stream]:
                s.released[stream] = through
                self.say("emitter", self._release(stream, through))

    def _release(self, stream: Stream, through: int) -> Released:
        s = self.sender
        released = Released(
            site=s.site,
            epoch=s.epoch,
            incarnation=s.incarnation,
            channel=stream[0],
            partition=stream[1],
            target_partition=stream[2],
            through=EmissionNumber(through),
            by="exposure",
        )
        if self.mode == "exposed":
            return released
        return replace(
            released,
            by="gate",
            timeline=Timeline(self.timeline),
            lsn_wanted=Lsn(self.random.randint(self.owed[stream][through - 1][1], self.flushed)),
            other_lsn_flushed=Lsn(self.flushed),
            other_timeline=Timeline(self.timeline),
            other_epoch=s.epoch,
        )

    def emit(self) -> None:
        r, s = self.random, self.sender
        self.release()
        for stream in self._streams():
            kind = self.channels[stream[0]]
            while s.sent[stream] < s.released[stream] and r.random() < 0.9:
                number = s.sent[stream] + 1
                if kind in ("R0", "R2") and number < s.released[stream] and r.random() < 0.05:
                    self._attempt(s, stream, number + 1)
                self._attempt(s, stream, number)
                if kind != "R3" and r.random() < 0.1:
                    self._attempt(s, stream, number)
                s.sent[stream] = number

    def haunt(self) -> None:
        """A sender of an ended epoch sends something that it had released."""
        r = self.random
        if not self.zombies:
            return
        zombie = r.choice(self.zombies)
        fenced = [channel for channel, kind in self.channels.items() if kind == "R2"]
        if fenced and r.random() < 0.3 and self.claim(zombie, r.choice(fenced)) == "older-epoch":
            self.end_zombie(zombie)
            return
        streams = [s for s, through in zombie.released.items() if through and self.channels[s[0]] != "R3"]
        if not streams:
            return
        stream = r.choice(streams)
        number = r.randint(1, min(zombie.released[stream], self.received[stream] + 1))
        if self._attempt(zombie, stream, number, zombie.known[stream]) == "older-epoch":
            self.end_zombie(zombie)

    def end_zombie(self, zombie: Sender) -> None:
        self.say("lab", ProcessEnded(process=zombie.process, exit_code=5, reason="fenced"))
        self.zombies.remove(zombie)

    def _attempt(self, sender: Sender, stream: Stream, number: int, digests: list[str] | None = None) -> str:
        last = self.received[stream]
        kind = self.channels[stream[0]]
        answer = "accepted"
        if kind == "R2" and (sender.epoch, sender.incarnation) < self.claims[stream[0]]:
            answer = "older-epoch"
        elif number <= last:
            answer = "repeat"
        elif number > last + 1:
            answer = "gap"
        if answer == "accepted":
            self.received[stream] = number
        known = digests if digests is not None else [digest for digest, _ in self.owed[stream]]
        attempted = EmissionAttempted(
            channel=stream[0],
            partition=stream[1],
            target_partition=stream[2],
            number=EmissionNumber(number),
            digest=known[number - 1],
            epoch=sender.epoch,
            incarnation=sender.incarnation,
            site=sender.site,
            answer=answer,  # type: ignore[arg-type]
        )
        self.say("receiver", attempted)
        return answer
