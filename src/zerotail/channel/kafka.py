"""A topic of a Kafka cluster that is not ours. Messages of source partition N go to partition N there.

Each message carries a header `zt-emission`, a JSON object with channel, partition, target, number, epoch, incarnation,
possible_duplicate and, if it has one, the identity of the installation. A second one, `zt-exposed`, is there only when
no other site has what it came from.

R0: every batch is a transaction; readers use `read_committed`. The transactional id is installation and lane. A lane on
which another installation has sent is left alone.

1. A claim looks who wrote last, as far as that can be seen. If it is a newer sender, everything stays as it is.
2. It opens a producer with the lane's id: whatever an earlier one left open is ended, and that one can commit nothing
   more. Only now the end of the topic stands still for this lane.
3. It reads the last number from the end of the topic. An end that retention has emptied says "unknown", not 0.
4. After any failure of a batch the producer is gone, and with it the fence; sending is out of step until the lane is
   claimed anew.

R1: an idempotent producer without transactions; readers drop repeated numbers. It is never claimed.
"""

from __future__ import annotations

import msgspec

from zerotail.channel.receiver import ClaimAnswer, SendAnswer
from zerotail.core.emission import Lane
from zerotail.core.identity import EmissionNumber, Epoch, Incarnation
from zerotail.core.receiver import Welcome, find_unseen
from zerotail.kafka.topic import End, Headers, Place, TopicReader, TopicWriter
from zerotail.ports import (
    Accepted,
    ClaimAtReceiver,
    Done,
    Indefinite,
    OtherInstallation,
    OutOfOrder,
    SendEmissions,
    Superseded,
    Unreachable,
)

HEADER = "zt-emission"
EXPOSED = "zt-exposed"


class Emitted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the header of a message says."""

    channel: str
    partition: int
    target: int
    number: EmissionNumber
    epoch: Epoch
    incarnation: Incarnation
    possible_duplicate: bool
    installation: str = ""

    @property
    def sender(self) -> tuple[Epoch, Incarnation]:
        """Who sent it; the higher, the newer."""
        return self.epoch, self.incarnation


class KafkaReceiver:
    """One lane's partition of a topic outside; `transactional` makes it R0."""

    def __init__(self, lane: Lane, place: Place, *, transactional: bool) -> None:
        self._lane = lane
        self._transactional = transactional
        self._place = place
        self._writer = TopicWriter(place, None)
        self._reader = TopicReader(place)
        self._last: EmissionNumber | None = None
        """What the topic's end said, moved on by what was committed since; None when it could not say."""

    def claim(self, effect: ClaimAtReceiver) -> ClaimAnswer:
        """Become the only writer of the lane, and read its last number."""
        if not self._transactional:
            return Welcome(None, None)
        # 1
        found = self._reader.find_last(self._recognise, hidden_too=False)
        if isinstance(found, Emitted) and found.installation != effect.installation:
            return OtherInstallation(found.installation)
        if isinstance(found, Emitted) and found.sender > (effect.epoch, effect.incarnation):
            return Superseded(found.epoch)
        if not isinstance(found, Emitted | End):
            return found
        # 2
        self._writer.close()
        name = ("zerotail", *filter(None, [effect.installation]), *map(str, effect.lane))
        self._writer = TopicWriter(self._place, "/".join(name))
        if isinstance(opened := self._writer.open(), Unreachable):
            return opened
        # 3
        found = self._reader.find_last(self._recognise)
        match found:
            case Emitted():
                self._last = found.number
                return Welcome(found.number, found.epoch)
            case End():
                self._last = EmissionNumber(0) if found.is_whole else None
                return Welcome(self._last, None)
        self._writer.close()
        return found

    def send(self, effect: SendEmissions) -> SendAnswer:
        """Append a batch behind the last number."""
        if not self._transactional:
            return self._send_plainly(effect)
        # 4
        before = EmissionNumber(effect.first - 1)
        if not self._writer.is_open:
            return OutOfOrder(before)
        last = before if self._last is None else self._last
        missing = find_unseen(last, effect.first, effect.values)
        if missing is None:
            return OutOfOrder(last)
        if missing and not isinstance(self._write(effect, len(missing)), Done):
            return Indefinite()
        self._last = EmissionNumber(max(last, effect.last))
        return Accepted(self._last)

    def close(self) -> None:
        """Give both clients back."""
        self._writer.close()
        self._reader.close()

    def _send_plainly(self, effect: SendEmissions) -> SendAnswer:
        if not self._writer.is_open:
            self._writer.open()
        written = self._write(effect, len(effect.values))
        return Accepted(effect.last) if isinstance(written, Done) else Indefinite()

    def _write(self, effect: SendEmissions, count: int) -> Done | Indefinite:
        """Append the last `count` messages of a batch."""
        first = EmissionNumber(effect.last - count + 1)
        values = effect.values[len(effect.values) - count :]
        flag = {EXPOSED: b"true"} if effect.exposed else {}
        return self._writer.write(
            (value, {HEADER: _header(effect, EmissionNumber(number)), **flag})
            for number, value in enumerate(values, first)
        )

    def _recognise(self, headers: Headers) -> Emitted | None:
        """What a message says of itself, if it is of this lane."""
        said = _decode(headers.get(HEADER, b""))
        return said if said and (said.channel, said.partition, said.target) == self._lane else None


def _header(effect: SendEmissions, number: EmissionNumber) -> bytes:
    channel, partition, target = effect.lane
    doubtful = number <= effect.doubtful_until
    return msgspec.json.encode(
        Emitted(
            channel,
            partition,
            target,
            number,
            effect.epoch,
            effect.incarnation,
            possible_duplicate=doubtful,
            installation=effect.installation,
        )
    )


def _decode(value: bytes) -> Emitted | None:
    try:
        return msgspec.json.decode(value, type=Emitted)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
