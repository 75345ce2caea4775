"""What runs in a simulated pair of sites: two or more producers, a stage, sometimes a second one behind it.

    A, B ──▶ topic P ──▶ stage C ──▶ channel bank                      (one stage)
    A, B ──▶ topic P ──▶ stage C ──▶ topic Q ──▶ stage D ──▶ channel mail
                             │          ▲
                             └▶ bank    └── X, another writer           (two stages)

The handlers put everything into their messages that could differ if a record were decided twice: its place
in the order, the state it found and the time it was given.
"""

from __future__ import annotations

from collections.abc import Mapping

from zerotail.core.emission import Lane
from zerotail.core.identity import ChannelName, PartitionNumber, ProducerNumber, StageName, TopicName
from zerotail.core.receiver import DoubtPolicy, ReceiverClass
from zerotail.flow.stage import Stage
from zerotail.handler import Emission, Given, Handler, Record, State
from zerotail.ports import Feed
from zerotail.simulation.outside import Kind
from zerotail.simulation.parts import Topology

BANK, MAIL, HOP = ChannelName("bank"), ChannelName("mail"), ChannelName("q")
P, Q = TopicName("p"), TopicName("q")
C, D = StageName("c"), StageName("d")
X = ProducerNumber(9)
FIRST_INNER = 20


# What may be wrong with an instruction, as the last part of its value.
IN_KEYS, IN_APPLY, IN_CODE, LATER = "in keys", "in apply", "in code", "later"
FLAWS = (IN_KEYS, IN_APPLY, IN_CODE, LATER)


class Ledger:
    """Adds up amounts per account, and tells the bank; every seventh amount says nothing, every fifth
    twice.

    It fails at a value with a flaw: when it is asked for keys, after it has booked the amount, or as long as its code
    is not repaired. A flaw that is for later shows in the next stage.
    """

    def __init__(self, channel: str, hop: bool = False) -> None:
        self._channel = channel
        self._hop = hop
        self.repaired = False

    def keys(self, record: Record) -> list[str]:
        """The account."""
        if record.value[-1] == IN_KEYS:
            raise ValueError("no account")
        return [f"a{record.value[0]}"]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        """Book one amount."""
        account, amount = record.value[:2]
        flaw = record.value[-1]
        key = f"a{account}"
        balance = state.get(key, 0) + amount
        state[key] = balance
        if flaw == IN_APPLY or (flaw == IN_CODE and not self.repaired):
            raise ValueError("no such amount")
        said = [record.producer, record.serial, record.position, balance, given.now.microsecond]
        emissions = [] if amount % 7 == 0 else [Emission(self._channel, said)]
        if amount % 5 == 0:
            emissions.append(Emission(self._channel, [*said, given.random.getrandbits(16)]))
        if self._hop and amount % 3:
            handed_on = [account, amount, balance, record.position]
            emissions.append(Emission(HOP, [*handed_on, IN_APPLY] if flaw == LATER else handed_on, key))
        return emissions


def make_topology(
    *,
    partitions: int,
    producers: int,
    receiver: ReceiverClass,
    policy: DoubtPolicy,
    two_stages: bool = False,
    handler: Handler | None = None,
    channels: Mapping[str, ReceiverClass] | None = None,
    kind: Kind = Kind.HTTP,
) -> Topology:
    """A topology of the given size; `handler` and `channels` replace those of stage C."""
    names = [ProducerNumber(number) for number in range(1, producers + 1)]
    targets = dict.fromkeys(channels or {BANK: receiver}, 1)
    if two_stages:
        targets[HOP] = partitions
    stages: list[Stage] = []
    feeds: list[Feed] = []
    lanes: dict[Lane, ReceiverClass] = {}
    lane_stages: dict[Lane, StageName] = {}
    inner: dict[ProducerNumber, Lane] = {}
    all_producers: dict[StageName, list[ProducerNumber]] = {C: names}
    for number in range(partitions):
        partition = PartitionNumber(number)
        rule = handler or Ledger(BANK, two_stages)
        stages.append(Stage(C, partition, P, rule, "1", targets))
        feeds += [Feed(producer, P, partition, C) for producer in names]
        for channel, of_class in (channels or {BANK: receiver}).items():
            lane = Lane(ChannelName(channel), partition)
            lanes[lane] = of_class
            lane_stages[lane] = C
    if two_stages:
        sources = [ProducerNumber(FIRST_INNER + number) for number in range(partitions)]
        inner = {producer: Lane(HOP, PartitionNumber(number)) for number, producer in enumerate(sources)}
        all_producers[D] = [X, *sources]
        for number in range(partitions):
            partition = PartitionNumber(number)
            stages.append(Stage(D, partition, Q, Ledger(MAIL), "1", {MAIL: 1}))
            feeds.append(Feed(X, Q, partition, D))
            for source, lane in inner.items():
                toward = Lane(HOP, lane.partition, partition)
                feeds.append(Feed(source, Q, partition, D, toward))
                lane_stages[toward] = C
            lanes[Lane(MAIL, partition)] = receiver
            lane_stages[Lane(MAIL, partition)] = D
    return Topology(stages, all_producers, feeds, lanes, lane_stages, inner, policy, kind)
