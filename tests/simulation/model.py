"""Two small models of the protocol, explored through every interleaving there is.

The simulator runs the real code and samples the interleavings; these models are sketches of it, small enough to visit
all of them. What a message says is the whole history behind it, so that any other order shows as other bytes.

`OneHop`: two producers, one partition, a stage, its journal in a log that is shipped to a standby, the gate, an
emitter, a receiver of any class; the stage and the emitter restart, the link is cut, the site dies or goes on as a
zombie, the standby is promoted and carries on.

`TwoHops`: a stage C whose messages another stage D takes from the topic Q, and a database that fails over inside the
site while Kafka survives, so that Q may hold messages of a past that did not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

S = TypeVar("S")
Record = tuple[str, int]
History = tuple[Record, ...]


@dataclass(frozen=True)
class Explored:
    """All states that can be reached, and the first one that is wrong, with the shortest way to it."""

    states: int
    wrong: str | None
    story: tuple[str, ...]


def explore(
    start: S, steps: Callable[[S], Iterator[tuple[str, S]]], wrong: Callable[[S, bool], str | None]
) -> Explored:
    """Visit every state breadth first; `wrong` is told whether a state is an end."""
    came_from: dict[S, tuple[str, S] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        following = list(steps(state))
        if verdict := wrong(state, not following):
            return Explored(len(came_from), verdict, _story(came_from, state))
        for name, next_state in following:
            if next_state not in came_from:
                came_from[next_state] = (name, state)
                waiting.append(next_state)
    return Explored(len(came_from), None, ())


def _story(came_from: dict[S, tuple[str, S] | None], state: S) -> tuple[str, ...]:
    told: list[str] = []
    while (step := came_from[state]) is not None:
        told.append(step[0])
        state = step[1]
    return tuple(reversed(told))


# One hop ------------------------------------------------------------------------------------------------------------

INSTRUCTIONS: History = (("A", 1), ("A", 2), ("B", 1))


class Entry(NamedTuple):
    """One entry of the log: records taken, or a number acknowledged, or (R3) intended."""

    kind: str
    records: History = ()
    number: int = 0


class One(NamedTuple):
    """A state of the one-hop system."""

    log: tuple[Entry, ...] = ()
    shipped: int = 0
    site: str = "up"  # up, cut, dead
    kafka: History = ()
    sent_by: tuple[int, int] = (0, 0)
    repeats_left: int = 1
    cursor: int = 0
    taken: History = ()
    journaled: int = 0
    released: int = 0
    emitted: int = 0
    restarts_left: int = 1
    received: tuple[tuple[int, History], ...] = ()
    survivor: tuple[History, int] | None = None
    doubts: tuple[int, ...] = ()
    older: tuple[History, int] | None = None
    """What an older instance of C has taken, and how much of it is journaled: it may still commit."""


def history_of(log: tuple[Entry, ...]) -> History:
    return tuple(record for entry in log if entry.kind == "segment" for record in entry.records)


def highest(log: tuple[Entry, ...], kind: str) -> int:
    return max((entry.number for entry in log if entry.kind == kind), default=0)


def follows(history: History, record: Record) -> bool:
    return record[1] == 1 + sum(one[0] == record[0] for one in history)


@dataclass(frozen=True)
class OneHop:
    """The protocol toward a receiver of one class; `bug` breaks one rule of it."""

    receiver: str = "R1"
    bug: str = ""
    instructions: History = INSTRUCTIONS

    def explore(self) -> Explored:
        return explore(One(), self.steps, self.wrong)

    def steps(self, s: One) -> Iterator[tuple[str, One]]:
        if s.site != "dead":
            yield from self._producers(s)
            yield from self._stage(s)
            yield from self._emitter(s)
        if s.site == "up":
            if s.shipped < len(s.log):
                yield "the log is shipped", s._replace(shipped=s.shipped + 1)
            yield "the link is cut", s._replace(site="cut")
            yield "the site dies", s._replace(site="dead")
        if s.site != "up":
            yield from self._survivor(s)

    def _producers(self, s: One) -> Iterator[tuple[str, One]]:
        for place, name in enumerate("AB"):
            record = (name, s.sent_by[place] + 1)
            if record in self.instructions:
                sent = (s.sent_by[0] + (place == 0), s.sent_by[1] + (place == 1))
                yield f"{name} sends", s._replace(kafka=(*s.kafka, record), sent_by=sent)
        if s.repeats_left and s.kafka:
            yield "a producer sends again", s._replace(kafka=(*s.kafka, s.kafka[-1]), repeats_left=0)

    def _stage(self, s: One) -> Iterator[tuple[str, One]]:
        if s.cursor < len(s.kafka):
            record = s.kafka[s.cursor]
            taken = (*s.taken, record) if follows(s.taken, record) else s.taken
            yield "C reads", s._replace(cursor=s.cursor + 1, taken=taken)
        if len(s.taken) > s.journaled:
            there = history_of(s.log)
            if s.journaled == len(there) or self.bug == "no compare-and-set":
                segment = Entry("segment", s.taken[s.journaled :])
                moved = s._replace(log=(*s.log, segment), journaled=len(s.taken))
                if self.bug == "release at the local commit":
                    moved = moved._replace(released=len(history_of(moved.log)))
                yield "C commits", moved
            else:
                yield "C has lost", s._replace(cursor=0, taken=there, journaled=len(there))
            if self.bug == "release before the commit":
                yield "released too early", s._replace(released=len(s.taken))
        if s.restarts_left:
            there = history_of(s.log)
            again = s._replace(cursor=0, taken=there, journaled=len(there), released=0, restarts_left=0)
            if self.bug == "a restart trusts the rows it sees":
                again = again._replace(released=len(there))
            resume = self._resume(s, s.log)
            yield "C and the emitter restart", again._replace(emitted=resume, doubts=self._doubts(s, s.log, resume))
            # A second instance of the stage: it starts from the head while the first one still has its batch.
            second = s._replace(cursor=0, taken=there, journaled=len(there), restarts_left=0)
            if len(s.taken) > s.journaled:
                yield "another C starts", second._replace(older=(s.taken, s.journaled))
        if s.older is not None:
            taken, journaled = s.older
            if journaled == len(history_of(s.log)) or self.bug == "no compare-and-set":
                segment = Entry("segment", taken[journaled:])
                yield "the older C commits", s._replace(log=(*s.log, segment), older=None)
            else:
                yield "the older C is refused", s._replace(older=None)

    def _resume(self, s: One, log: tuple[Entry, ...]) -> int:
        """Where a sender that starts goes on: behind what the receiver has, or behind what was acknowledged."""
        if self.receiver in ("R0", "R2") and self.bug != "resume without a handshake":
            return max((number for number, _ in s.received), default=0)
        return highest(log, "acknowledged")

    def _doubts(self, s: One, log: tuple[Entry, ...], resume: int) -> tuple[int, ...]:
        """R3: what may have been sent and was not acknowledged; it is listed, and then sent again."""
        if self.receiver != "R3" or self.bug == "doubts are not listed":
            return s.doubts
        return tuple(sorted({*s.doubts, *range(resume + 1, highest(log, "intended") + 1)}))

    def _emitter(self, s: One) -> Iterator[tuple[str, One]]:
        # The position is taken after the rows were read, so the gate is asked for the whole log.
        gate = s.site == "up" and s.survivor is None and s.shipped == len(s.log)
        gate = gate or (self.bug == "the gate falls open when the link is cut" and s.site == "cut")
        if gate and s.released < len(history_of(s.log)):
            yield "the gate opens", s._replace(released=len(history_of(s.log)))
        number = s.emitted + 1
        if number <= s.released:
            if self.receiver == "R3" and highest(s.log[: s.shipped], "intended") < number:
                if highest(s.log, "intended") < number:
                    yield "an intent is stored", s._replace(log=(*s.log, Entry("intended", number=number)))
            else:
                source = s.taken if len(s.taken) >= number else history_of(s.log)
                refused = (
                    self.receiver in ("R0", "R2")
                    and s.survivor is not None
                    and self.bug != "an older epoch is accepted"
                )
                received = s.received if refused else self._deliver(s.received, number, source)
                yield f"{number} is sent", s._replace(emitted=number, received=received)
        if s.emitted > highest(s.log, "acknowledged"):
            yield "acknowledged", s._replace(log=(*s.log, Entry("acknowledged", number=s.emitted)))
        if self.bug == "acknowledged before it was sent" and s.emitted < s.released:
            early = Entry("acknowledged", number=s.emitted + 1)
            if highest(s.log, "acknowledged") <= s.emitted:
                yield "acknowledged too early", s._replace(log=(*s.log, early))

    def _deliver(
        self, received: tuple[tuple[int, History], ...], number: int, source: History
    ) -> tuple[tuple[int, History], ...]:
        message = (number, source[:number])
        if self.receiver == "R1" and message in received:
            return received
        if self.receiver in ("R0", "R2") and self.bug != "an older epoch is accepted":
            last = max((one for one, _ in received), default=0)
            return (*received, message) if number == last + 1 else received
        return (*received, message)

    def _survivor(self, s: One) -> Iterator[tuple[str, One]]:
        if s.survivor is None:
            kept = s.log[: s.shipped]
            resume = self._resume(s, kept)
            doubts = self._doubts(s, kept, resume)
            histories = [history_of(kept)]
            if self.bug == "replay without the recorded order":
                histories = legal_orders(histories[0])
            for history in histories:
                yield "the standby takes over", s._replace(survivor=(history, resume), doubts=doubts)
            return
        history, sent = s.survivor
        if sent < len(history):
            received = self._deliver(s.received, sent + 1, history)
            yield f"the survivor sends {sent + 1}", s._replace(survivor=(history, sent + 1), received=received)
        for record in self.instructions:
            if record not in history and follows(history, record):
                yield f"the survivor takes {record}", s._replace(survivor=((*history, record), sent))

    def wrong(self, s: One, end: bool) -> str | None:
        seen: dict[int, History] = {}
        for number, history in s.received:
            if number in seen:
                if seen[number] != history:
                    return "two messages of one number"
                if number not in s.doubts:
                    return "a message twice"
                continue
            if number != len(seen) + 1:
                return "a message is missing"
            seen[number] = history
        for history in (history_of(s.log), *([s.survivor[0]] if s.survivor else [])):
            if len(set(history)) < len(history):
                return "an instruction applied twice"
        if end and len(seen) < len(self.instructions):
            return "a message never arrives"
        return None


def legal_orders(history: History) -> list[History]:
    """Every order of these records in which each producer's own order holds."""
    if not history:
        return [()]
    found = []
    for last in sorted(set(history)):
        rest = tuple(record for record in history if record != last)
        found += [(*order, last) for order in legal_orders(rest) if follows(order, last)]
    return found


# Two hops -----------------------------------------------------------------------------------------------------------


class Message(NamedTuple):
    """A message of C in Q: its number, what it says, and the epoch in which it was sent."""

    number: int
    says: History
    epoch: int


class Two(NamedTuple):
    """A state of the two-hop system. The log holds C's records and D's messages as they were journaled."""

    log: tuple[tuple[str, Record | Message], ...] = ()
    shipped: int = 0
    released: int = 0
    epoch: int = 1
    cut: int = 0
    """How many of C's messages survived the first epoch."""
    topic: tuple[Message, ...] = ()
    sent: int = 0
    cursor: int = 0
    failovers_left: int = 1
    repeats_left: int = 1


@dataclass(frozen=True)
class TwoHops:
    """C writes to Q under one of three rules; D drops orphans, or does not."""

    write_after: str  # "gate", "local commit", "nothing"
    orphans_dropped: bool

    def explore(self) -> Explored:
        return explore(Two(), self.steps, self.wrong)

    @staticmethod
    def taken_by_c(s: Two) -> History:
        return tuple(record for stage, record in s.log if stage == "C" and not isinstance(record, Message))

    @staticmethod
    def taken_by_d(s: Two) -> tuple[Message, ...]:
        return tuple(message for stage, message in s.log if stage == "D" and isinstance(message, Message))

    def steps(self, s: Two) -> Iterator[tuple[str, Two]]:
        history = self.taken_by_c(s)
        for record in (("A", 1), ("B", 1), ("B", 2)):
            if record not in history and follows(history, record):
                yield f"C takes {record}", s._replace(log=(*s.log, ("C", record)))
                if self.write_after == "nothing" and s.sent == len(history):
                    early = Message(len(history) + 1, (*history, record), s.epoch)
                    yield "C writes before it commits", s._replace(topic=(*s.topic, early), sent=s.sent + 1)
        if s.shipped < len(s.log):
            yield "the log is shipped", s._replace(shipped=s.shipped + 1)
        if s.shipped == len(s.log) and s.released < len(history):
            yield "the gate opens", s._replace(released=len(history))
        allowed = s.released if self.write_after == "gate" else len(history)
        if s.sent < allowed:
            message = Message(s.sent + 1, history[: s.sent + 1], s.epoch)
            yield f"C writes {message.number}", s._replace(topic=(*s.topic, message), sent=s.sent + 1)
        if s.repeats_left and s.sent:
            yield "C writes again", s._replace(sent=s.sent - 1, repeats_left=0)
        yield from self._downstream(s)
        if s.failovers_left:
            kept = s._replace(log=s.log[: s.shipped], shipped=s.shipped)
            cut = len(self.taken_by_c(kept))
            yield (
                "the database fails over",
                kept._replace(epoch=2, cut=cut, released=0, sent=min(s.sent, cut), cursor=0, failovers_left=0),
            )

    def _downstream(self, s: Two) -> Iterator[tuple[str, Two]]:
        if s.cursor == len(s.topic):
            return
        message = s.topic[s.cursor]
        orphan = message.epoch < s.epoch and message.number > s.cut
        wanted = message.number == len(self.taken_by_d(s)) + 1
        if wanted and not (orphan and self.orphans_dropped):
            yield f"D takes {message.number}", s._replace(log=(*s.log, ("D", message)), cursor=s.cursor + 1)
        else:
            yield "D drops a message", s._replace(cursor=s.cursor + 1)

    def wrong(self, s: Two, end: bool) -> str | None:
        history = self.taken_by_c(s)
        for message in self.taken_by_d(s):
            if message.number > len(history) or message.says != history[: message.number]:
                return "D has a message that C never sent"
        if end and len(self.taken_by_d(s)) < 3:
            return "a message never arrives"
        return None
