"""Chains, heads, emission numbers, epochs, the gate, receivers, takeover plans: the pure rules one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zerotail.core.chain import GENESIS, input_content, link, output_content
from zerotail.core.emission import Lane, number_emissions
from zerotail.core.epoch import (
    Cut,
    Durability,
    EpochRow,
    Lineage,
    Phase,
    live_at,
    next_epoch,
    topic_at,
    works_at,
)
from zerotail.core.gate import Asker, Gate, GateAnswer, decide
from zerotail.core.head import Hint, advance, first_head, runs_of
from zerotail.core.identity import (
    ChannelName,
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    Offset,
    PartitionNumber,
    Position,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    Timeline,
    TopicName,
    epoch_of,
)
from zerotail.core.receiver import (
    Doubt,
    DoubtPolicy,
    LaneRecord,
    ReceiverClass,
    Resume,
    Welcome,
    plan_resume,
    require_own_lineage,
)
from zerotail.core.record import DIGEST_BYTES, digest_of
from zerotail.core.takeover import SiteView, Step, plan_exposure, plan_takeover
from zerotail.errors import Broken, Refused
from zerotail.flow.emit import Claim

pytestmark = pytest.mark.fast

EAST, WEST = SiteName("east"), SiteName("west")
A, B = ProducerNumber(1), ProducerNumber(2)
BANK = (ChannelName("bank"), PartitionNumber(0))
LANE = Lane(ChannelName("bank"), PartitionNumber(0))
FIRST, SECOND = epoch_of(1, 0), epoch_of(2, 1)


def _row(epoch: Epoch, site: SiteName, timeline: int, **changes: object) -> EpochRow:
    row = EpochRow(epoch, site, Timeline(timeline), Durability.GATED, Phase.LIVE, Cut())
    return replace(row, **changes)  # type: ignore[arg-type]


START = Lineage((_row(FIRST, EAST, 1),))


# Chains.


def test_a_chain_differs_when_anything_before_it_differs() -> None:
    def content(**changes: object) -> bytes:
        given = {
            "epoch": FIRST,
            "segment": SegmentNumber(1),
            "first_position": Position(0),
            "decided_at": 5,
            "version": "1",
            "runs": ((A, Serial(1), 2),),
            "digests": (b"x" * 16, b"y" * 16),
        }
        return input_content(**(given | changes))  # type: ignore[arg-type]

    variants = [
        content(),
        content(epoch=SECOND),
        content(segment=SegmentNumber(2)),
        content(first_position=Position(1)),
        content(decided_at=6),
        content(version="2"),
        content(runs=((A, Serial(1), 1), (B, Serial(1), 1))),
        content(digests=(b"y" * 16, b"x" * 16)),
    ]
    assert len({link(GENESIS, one) for one in variants}) == len(variants)
    assert link(GENESIS, content()) != link(link(GENESIS, content()), content())


def test_an_output_chain_covers_channel_target_number_and_bytes() -> None:
    one = (ChannelName("bank"), PartitionNumber(0), EmissionNumber(1), b"v")
    others = [
        (ChannelName("mail"), *one[1:]),
        (one[0], PartitionNumber(1), *one[2:]),
        (*one[:2], EmissionNumber(2), one[3]),
        (*one[:3], b"w"),
    ]
    contents = {
        output_content({(channel, target): (number, [value])}) for channel, target, number, value in [one, *others]
    }
    assert len(contents) == 5
    assert len(digest_of(b"")) == DIGEST_BYTES


def test_an_output_chain_does_not_depend_on_the_order_in_which_lanes_are_given() -> None:
    bank, mail = ((ChannelName(name), PartitionNumber(0)) for name in ("bank", "mail"))
    first, second = (EmissionNumber(1), [b"v", b"w"]), (EmissionNumber(7), [b"x"])
    assert output_content({bank: first, mail: second}) == output_content({mail: second, bank: first})
    assert output_content({bank: first, mail: second}) != output_content({bank: second, mail: first})


# Heads and emission numbers.


def test_runs_join_consecutive_serials_of_one_producer() -> None:
    assert runs_of([A, A, B, A], [Serial(1), Serial(2), Serial(1), Serial(3)]) == (
        (A, 1, 2),
        (B, 1, 1),
        (A, 3, 1),
    )


def test_a_segment_moves_vector_position_numbers_and_chains() -> None:
    head = first_head(FIRST, [A, B])
    owed = number_emissions(head.numbers, {BANK: [b"one", b"two"]})
    moved, segment = advance(
        head,
        producers=[A, B],
        serials=[Serial(1), Serial(1)],
        digests=[b"d" * 16] * 2,
        decided_at=9,
        version="1",
        owed=owed,
        hint=Hint("log", Offset(2)),
    )
    assert (moved.segment, moved.next_position, moved.vector) == (1, 2, {A: 1, B: 1})
    assert moved.numbers == {BANK: 2}
    assert segment.previous == head.chain
    assert moved.token.chain == segment.chain == link(head.chain, segment.content)
    assert moved.in_epoch(SECOND).token != moved.token


def test_numbers_are_dense_per_lane_and_packed_per_segment() -> None:
    mail = (ChannelName("mail"), PartitionNumber(0))
    owed = number_emissions({BANK: EmissionNumber(4)}, {BANK: [b"a", b"c"], mail: [b"b"]})
    assert owed == {BANK: (5, [b"a", b"c"]), mail: (1, [b"b"])}


# Epochs.


def test_a_record_counts_up_to_the_cut_of_the_epoch_after_its_own() -> None:
    cut = Cut({(A, PartitionNumber(0)): Serial(7), (A, PartitionNumber(1)): Serial(3)})
    lineage = START.opened(_row(SECOND, WEST, 2, cut=cut))
    assert lineage.limits(PartitionNumber(0)) == {FIRST: {A: 7}, SECOND: None}
    assert FIRST in lineage
    assert epoch_of(9, 0) not in lineage


def test_an_epoch_must_be_newer_than_the_current_one() -> None:
    with pytest.raises(ValueError, match="does not follow"):
        START.opened(_row(FIRST, EAST, 1))


def test_a_site_works_only_on_the_timeline_of_its_epoch() -> None:
    assert works_at(START, EAST, Timeline(1))
    assert not works_at(START, EAST, Timeline(2))
    assert not works_at(START, EAST, None)
    assert not works_at(START, WEST, Timeline(1))


def test_an_epoch_that_is_only_opened_is_not_live() -> None:
    opened = START.changed(phase=Phase.OPENED)
    assert works_at(opened, EAST, Timeline(1))
    assert not live_at(opened, EAST, Timeline(1))
    assert live_at(START, EAST, Timeline(1))


def test_the_current_row_changes_and_the_others_stay() -> None:
    exposed = START.changed(durability=Durability.EXPOSED, operator="west is out")
    assert exposed.current.durability is Durability.EXPOSED
    assert exposed.current.operator == "west is out"
    assert exposed.changed(phase=Phase.DRAINING).current.operator == "west is out"


def test_the_next_epoch_is_of_the_next_generation_and_of_the_own_site() -> None:
    assert next_epoch(START, 1) == epoch_of(2, 1)


def test_a_topic_of_a_site_that_came_back_has_the_epoch_in_its_name() -> None:
    assert topic_at(TopicName("p"), None) == "p"
    assert topic_at(TopicName("p"), SECOND) == f"p.{SECOND}"


# The gate.


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Gate.OPEN),
        ({"flushed": Lsn(9)}, Gate.BEHIND),
        ({"in_recovery": False}, Gate.NOT_A_STANDBY),
        ({"system": 8}, Gate.OTHER_SYSTEM),
        ({"timeline": Timeline(2)}, Gate.OTHER_TIMELINE),
        ({"epoch": SECOND}, Gate.OTHER_EPOCH),
    ],
)
def test_the_gate_opens_only_when_everything_fits(changes: dict[str, object], verdict: Gate) -> None:
    answer = replace(GateAnswer(True, 7, Timeline(1), FIRST, Lsn(10)), **changes)  # type: ignore[arg-type]
    assert decide(answer, Asker(7, Timeline(1), FIRST), Lsn(10)) is verdict


# Receivers.


def _record(journaled: int, acknowledged: int, intended: int = 0) -> LaneRecord:
    return LaneRecord(
        EmissionNumber(journaled), EmissionNumber(acknowledged), EmissionNumber(max(intended, acknowledged))
    )


def _resume(receiver: ReceiverClass, record: LaneRecord, last: int | None, policy: DoubtPolicy) -> Resume | Doubt:
    welcome = Welcome(None if last is None else EmissionNumber(last), None)
    return plan_resume(LANE, receiver, record, welcome if receiver.remembers else None, policy)


@pytest.mark.parametrize("receiver", [ReceiverClass.R0, ReceiverClass.R2])
def test_a_receiver_that_remembers_says_where_to_go_on(receiver: ReceiverClass) -> None:
    assert _resume(receiver, _record(9, 4), 6, DoubtPolicy.HOLD) == Resume(EmissionNumber(7), EmissionNumber(0))


@pytest.mark.parametrize("last", [3, 10])
def test_a_receiver_outside_what_is_possible_stops_everything(last: int) -> None:
    with pytest.raises(Broken, match="messages of partition 0"):
        _resume(ReceiverClass.R2, _record(9, 4), last, DoubtPolicy.HOLD)


def test_an_unknown_last_number_is_not_zero() -> None:
    assert _resume(ReceiverClass.R0, _record(9, 4), None, DoubtPolicy.HOLD) == Resume(
        EmissionNumber(5), EmissionNumber(9)
    )


def test_a_receiver_that_drops_repeats_gets_everything_since_the_acknowledgement_again() -> None:
    assert _resume(ReceiverClass.R1, _record(9, 4), None, DoubtPolicy.HOLD) == Resume(
        EmissionNumber(5), EmissionNumber(9)
    )


def test_a_receiver_that_can_do_nothing_leaves_doubts() -> None:
    record = _record(9, 4, 6)
    assert _resume(ReceiverClass.R3, record, None, DoubtPolicy.HOLD) == Doubt(EmissionNumber(5), EmissionNumber(6))
    assert _resume(ReceiverClass.R3, record, None, DoubtPolicy.RESEND) == Resume(EmissionNumber(5), EmissionNumber(6))
    assert _resume(ReceiverClass.R3, _record(9, 4), None, DoubtPolicy.HOLD) == Resume(
        EmissionNumber(5), EmissionNumber(4)
    )


def test_a_message_of_another_history_at_the_receiver_stops_everything() -> None:
    require_own_lineage(LANE, START, Welcome(EmissionNumber(0), None))
    require_own_lineage(LANE, START, Welcome(EmissionNumber(0), FIRST))
    with pytest.raises(Broken, match="not part of the history"):
        require_own_lineage(LANE, START, Welcome(EmissionNumber(0), SECOND))


def test_claims_are_compared_as_pairs() -> None:
    assert Claim(SECOND, Incarnation(1)) > Claim(FIRST, Incarnation(9))


# Takeover plans.


def _view(lineage: Lineage, site: SiteName, timeline: int | None) -> SiteView:
    number = 0 if site == EAST else 1
    return SiteView(site, number, lineage, None if timeline is None else Timeline(timeline))


def test_a_standby_takes_over_with_all_steps_and_is_exposed() -> None:
    plan = plan_takeover(_view(START, WEST, None))
    assert plan.steps[:3] == (Step.FENCE, Step.PROMOTE, Step.OPEN_EPOCH)
    assert plan.steps[-1] is Step.GO_LIVE
    assert (plan.expected, plan.epoch, plan.durability) == (FIRST, SECOND, Durability.EXPOSED)
    assert not plan.done


def test_a_promoted_standby_goes_on_with_the_epoch() -> None:
    assert plan_takeover(_view(START, WEST, 2)).steps[0] is Step.OPEN_EPOCH


def test_an_opened_epoch_is_finished() -> None:
    opened = START.opened(_row(SECOND, WEST, 2, phase=Phase.OPENED, cause="takeover"))
    plan = plan_takeover(_view(opened, WEST, 2))
    assert plan.steps == (Step.REBUILD, Step.FILL, Step.HANDSHAKE, Step.GO_LIVE)
    assert plan.epoch == SECOND


def test_the_active_site_has_nothing_to_do() -> None:
    assert plan_takeover(_view(START, EAST, 1)).done


def test_a_handover_that_was_given_up_is_reopened() -> None:
    assert plan_takeover(_view(START.changed(phase=Phase.DRAINING), EAST, 1)).steps == (Step.GO_LIVE,)


def test_a_failover_inside_the_site_opens_an_epoch_of_the_same_durability() -> None:
    plan = plan_takeover(_view(START, EAST, 2))
    assert (plan.cause, plan.durability) == ("timeline", Durability.GATED)
    assert plan.steps == (Step.OPEN_EPOCH, Step.HANDSHAKE, Step.GO_LIVE)


def test_a_renewed_epoch_is_finished_without_touching_kafka() -> None:
    opened = START.opened(_row(epoch_of(2, 0), EAST, 2, phase=Phase.OPENED, cause="timeline"))
    assert plan_takeover(_view(opened, EAST, 2)).steps == (Step.HANDSHAKE, Step.GO_LIVE)


def test_an_exposed_copy_must_not_take_over() -> None:
    exposed = START.changed(durability=Durability.EXPOSED)
    with pytest.raises(Refused, match="is exposed"):
        plan_takeover(_view(exposed, WEST, None))
    assert plan_takeover(_view(exposed, WEST, None), accept_loss=True).steps


def test_the_active_site_goes_on_alone_in_a_new_epoch() -> None:
    plan = plan_exposure(_view(START, EAST, 1))
    assert (plan.cause, plan.durability, plan.epoch) == ("exposure", Durability.EXPOSED, epoch_of(2, 0))


def test_a_site_that_is_exposed_already_finishes_what_it_began() -> None:
    row = _row(epoch_of(2, 0), EAST, 1, phase=Phase.OPENED, cause="exposure", durability=Durability.EXPOSED)
    lineage = START.opened(row)
    assert plan_exposure(_view(lineage, EAST, 1)).steps == (Step.STOP_WAITING, Step.HANDSHAKE, Step.GO_LIVE)
    assert plan_exposure(_view(lineage.changed(phase=Phase.LIVE), EAST, 1)).done


def test_only_the_active_site_can_go_on_alone() -> None:
    with pytest.raises(Refused, match="not the active site"):
        plan_exposure(_view(START, WEST, None))
