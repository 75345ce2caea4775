"""Stories told by hand: the answers that the swarm seldom gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from zerotail import ports
from zerotail.core.chain import GENESIS
from zerotail.core.emission import Lane
from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.gate import GateAnswer
from zerotail.core.head import advance, first_head
from zerotail.core.identity import (
    EmissionNumber,
    Epoch,
    Incarnation,
    Lsn,
    PartitionNumber,
    ProducerNumber,
    SegmentNumber,
    Serial,
    SiteName,
    StageName,
    Timeline,
    TopicName,
    epoch_of,
)
from zerotail.core.receiver import DoubtPolicy, ReceiverClass, Welcome
from zerotail.core.record import digest_of
from zerotail.core.takeover import SiteView, Step, plan_exposure
from zerotail.errors import Broken, Refused, Unavailable, Unfinished, ZerotailError
from zerotail.failover.handover import hand_over
from zerotail.failover.rejoin import rejoin
from zerotail.failover.replay import Replay, require_rows
from zerotail.failover.takeover import Pipeline, carry_out, expose, take_over
from zerotail.flow.gate import QUESTIONS, pass_gate
from zerotail.flow.stage import Stage
from zerotail.flow.submit import submit
from zerotail.simulation.topology import BANK, Ledger, make_topology

pytestmark = pytest.mark.fast

EAST, WEST = SiteName("east"), SiteName("west")
FIRST = epoch_of(1, 0)
ROW = EpochRow(FIRST, EAST, Timeline(1), Durability.GATED, Phase.LIVE, Cut())
LINEAGE = Lineage((ROW,))
STAGE = Stage(StageName("c"), PartitionNumber(0), TopicName("p"), Ledger(BANK), "1", {BANK: 1})
LANE = Lane(BANK, PartitionNumber(0))
PIPELINE = Pipeline([STAGE], {StageName("c"): [ProducerNumber(1)]}, {LANE: ReceiverClass.R2})
DONE = ports.Done(Lsn(9))


def _seen(lineage: Lineage, timeline: int | None, system: int = 7) -> ports.SiteObserved:
    standing = ports.Standing(
        lineage, None if timeline is None else Timeline(timeline), system, life="" if timeline is None else "this"
    )
    return ports.SiteObserved(standing, Lsn(9))


def _told(story: ports.Story[Any], answers: Sequence[Any]) -> tuple[Any, list[ports.Effect]]:
    """Drive a story with these answers, a pause needing none; what it returned or raised, and its effects."""
    effects: list[ports.Effect] = []
    left = list(answers)
    answer: Any = None
    try:
        while True:
            effect = story.send(answer)
            if isinstance(effect, ports.Pause):
                answer = None
                continue
            effects.append(effect)
            answer = left.pop(0)
    except StopIteration as stop:
        assert not left
        return stop.value, effects
    except ZerotailError as error:
        return error, effects


def _names(effects: Sequence[ports.Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def test_a_standby_that_follows_a_gated_site_needs_no_rejoin() -> None:
    result, _ = _told(rejoin(WEST, EAST), [_seen(LINEAGE, 1), _seen(LINEAGE, None)])
    assert result is False


def test_a_site_that_is_not_active_cannot_be_rejoined() -> None:
    result, _ = _told(rejoin(EAST, WEST), [_seen(LINEAGE, None)])
    assert isinstance(result, Refused)


def test_a_database_that_does_not_answer_is_not_replaced_without_a_statement() -> None:
    answers = [_seen(LINEAGE, 1), ports.Unreachable()]
    result, effects = _told(rejoin(WEST, EAST), answers)
    assert isinstance(result, Refused)
    assert "CopyDatabase" not in _names(effects)


def test_a_copy_that_may_have_sent_on_its_own_is_not_replaced() -> None:
    alone = LINEAGE.opened(replace(ROW, epoch=epoch_of(2, 1), site=WEST, durability=Durability.EXPOSED))
    result, effects = _told(rejoin(WEST, EAST), [_seen(LINEAGE, 1), _seen(alone, 2)])
    assert isinstance(result, Refused)
    assert "KeepTail" not in _names(effects)


def test_a_rejoin_keeps_the_tail_notes_the_return_copies_and_then_goes_back_to_gated() -> None:
    exposed = LINEAGE.opened(
        replace(ROW, epoch=epoch_of(2, 1), site=WEST, timeline=Timeline(2), durability=Durability.EXPOSED)
    )
    active = _seen(exposed, 2)
    answer = GateAnswer(True, 7, Timeline(2), epoch_of(2, 1), Lsn(9), life="this")
    answers = [active, _seen(LINEAGE, 1), DONE, DONE, DONE, active, answer, DONE, answer]
    result, effects = _told(rejoin(EAST, WEST), answers)
    assert result is True
    assert _names(effects)[2:5] == ["KeepTail", "RecordRejoined", "CopyDatabase"]
    assert _names(effects)[-2:] == ["ChangeEpoch", "AskGate"]


@pytest.mark.parametrize("slots", [frozenset(), frozenset({"another"})])
def test_a_standby_that_nobody_keeps_the_log_for_is_replaced_and_waited_for(slots: frozenset[str]) -> None:
    active = changed(_seen(LINEAGE, 1), slots=slots)
    standby = changed(_seen(LINEAGE, None), receives=False, slot="west")
    answer = GateAnswer(True, 7, Timeline(1), FIRST, Lsn(9), life="this")
    answers = [active, standby, DONE, DONE, DONE, active, replace(answer, flushed=Lsn(8)), answer]
    result, effects = _told(rejoin(WEST, EAST), answers)
    assert result is True
    asked = [name for name in _names(effects) if name != "Pause"]
    assert asked[2:] == ["KeepTail", "RecordRejoined", "CopyDatabase", "ObserveSite", "AskGate", "AskGate"]
    refused, _ = _told(hand_over(PIPELINE, EAST, WEST, 1), [active, standby])
    assert (isinstance(refused, Refused), refused.code) == (True, "ZT435")


def test_a_standby_that_is_only_not_connected_now_is_let_be() -> None:
    standby = changed(_seen(LINEAGE, None), receives=False, slot="west")
    kept = changed(_seen(LINEAGE, 1), slots=frozenset({"west"}))
    assert _told(rejoin(WEST, EAST), [kept, standby])[0] is False
    unknown = changed(standby, slot="")
    assert _told(rejoin(WEST, EAST), [_seen(LINEAGE, 1), unknown])[0] is False


def test_a_takeover_says_which_step_failed() -> None:
    for answer, kind, code in (
        (ports.Refused("no"), Refused, "ZT432"),
        (ports.Indefinite(), Unfinished, "ZT404"),
        (ports.Unreachable(), Unfinished, "ZT405"),
    ):
        answers = [_seen(LINEAGE, None), ports.Unreachable(), ports.Unreachable(), DONE, answer]
        result, effects = _told(take_over(PIPELINE, WEST, 1, EAST), answers)
        assert isinstance(result, kind)
        assert (result.code, result.tries) == (code, ("zerotail takeover status",))
        assert _names(effects)[-1] == "Promote"


def test_a_rejoin_says_which_step_failed_and_whether_somebody_knows() -> None:
    exposed = LINEAGE.opened(
        replace(ROW, epoch=epoch_of(2, 1), site=WEST, timeline=Timeline(2), durability=Durability.EXPOSED)
    )
    for answer, kind, code in (
        (ports.Refused("no"), Refused, "ZT412"),
        (ports.Indefinite(), Unfinished, "ZT415"),
        (ports.Unreachable(), Unfinished, "ZT412"),
    ):
        result, effects = _told(rejoin(EAST, WEST), [_seen(exposed, 2), _seen(LINEAGE, 1), answer])
        assert isinstance(result, kind)
        assert (result.code, result.tries) == (code, ("zerotail rejoin plan --site east",))
        assert _names(effects)[-1] == "KeepTail"


def test_a_takeover_of_the_active_site_has_nothing_to_do() -> None:
    result, effects = _told(take_over(PIPELINE, EAST, 0, WEST), [_seen(LINEAGE, 1)])
    assert result.plan.done
    assert len(effects) == 1


def test_a_takeover_goes_on_where_a_receiver_knows_another_history_and_says_which() -> None:
    opened = LINEAGE.opened(
        replace(
            ROW,
            epoch=epoch_of(2, 1),
            site=WEST,
            timeline=Timeline(2),
            durability=Durability.EXPOSED,
            phase=Phase.OPENED,
            cause="exposure",
        )
    )
    claimed = ports.LaneClaimed(ports.Standing(opened, Timeline(2), 7), Incarnation(1), Lsn(9))
    welcome = Welcome(EmissionNumber(3), Epoch(9999))
    answers = [_seen(opened, 2), claimed, welcome, DONE, DONE, DONE]
    result, effects = _told(take_over(PIPELINE, WEST, 1, EAST), answers)
    assert result.other_histories == tuple(PIPELINE.lanes)
    assert any(isinstance(effect, ports.ChangeEpoch) and effect.phase is Phase.LIVE for effect in effects)


def test_going_on_alone_opens_an_exposed_epoch_and_claims() -> None:
    standing = ports.Standing(LINEAGE, Timeline(1), 7)
    claimed = ports.LaneClaimed(standing, Incarnation(1), Lsn(9))
    result, effects = _told(
        expose(PIPELINE, EAST, 0, WEST), [_seen(LINEAGE, 1), DONE, DONE, DONE, DONE, claimed, DONE, DONE, DONE]
    )
    assert list(result.plan.steps) == [Step.STOP_WAITING, Step.OPEN_EPOCH, Step.HANDSHAKE, Step.GO_LIVE]
    assert isinstance(effects[1], ports.StopWaiting)
    opened = effects[3]
    assert isinstance(opened, ports.OpenEpoch)
    assert (opened.durability, opened.operator) == (Durability.EXPOSED, "west is out")


def test_nobody_goes_on_alone_beside_a_site_that_takes_over_by_itself_unless_that_one_is_shut_off() -> None:
    plan = plan_exposure(SiteView(EAST, 0, LINEAGE, Timeline(1)), fence=True)
    for answer in (ports.Unreachable(), ports.Refused("no")):
        result, effects = _told(carry_out(PIPELINE, plan, WEST, ""), [answer])
        assert (isinstance(result, Refused), result.code) == (True, "ZT477")
        assert _names(effects) == ["FenceSite"], "nothing else is done"
    _, effects = _told(carry_out(PIPELINE, plan, WEST, ""), [DONE, DONE, ports.Unreachable()])
    assert _names(effects) == ["FenceSite", "RecordStep", "StopWaiting"]


def test_a_handover_is_refused_while_doubts_are_open() -> None:
    answers = [_seen(LINEAGE, 1), _seen(LINEAGE, None), ports.Drained(0, 0, 2)]
    result, effects = _told(hand_over(PIPELINE, EAST, WEST, 1), answers)
    assert isinstance(result, Refused)
    assert "ChangeEpoch" not in _names(effects)


def test_a_handover_needs_both_databases_and_a_standby_in_step() -> None:
    nobody, _ = _told(hand_over(PIPELINE, EAST, WEST, 1), [ports.Unreachable(), _seen(LINEAGE, None)])
    assert isinstance(nobody, Unavailable)
    not_active, _ = _told(hand_over(PIPELINE, EAST, WEST, 1), [_seen(LINEAGE, 2), _seen(LINEAGE, None)])
    assert isinstance(not_active, Refused)
    not_standby, _ = _told(hand_over(PIPELINE, EAST, WEST, 1), [_seen(LINEAGE, 1), _seen(LINEAGE, 2)])
    assert isinstance(not_standby, Refused)


def test_a_handover_does_not_promote_a_standby_that_lacks_the_end_of_the_log() -> None:
    behind = ports.SiteObserved(_seen(LINEAGE, None).standing, Lsn(8))
    nothing = ports.Drained(0, 0, 0)
    answers = [_seen(LINEAGE, 1), _seen(LINEAGE, None), nothing, DONE, nothing, DONE, behind]
    result, effects = _told(hand_over(PIPELINE, EAST, WEST, 1), answers)
    assert isinstance(result, Unfinished)
    assert "Promote" not in _names(effects)


def test_a_handover_promotes_without_shutting_the_old_site_off() -> None:
    nothing = ports.Drained(0, 0, 0)
    answers = [_seen(LINEAGE, 1), _seen(LINEAGE, None), nothing, DONE, nothing, DONE, _seen(LINEAGE, None)]
    answers += [_seen(LINEAGE, None), ports.Refused("as far as it goes")]
    _, effects = _told(hand_over(PIPELINE, EAST, WEST, 1), answers)
    assert _names(effects)[-2:] == ["ObserveSite", "Promote"]


def test_a_stage_whose_state_is_stored_is_not_replayed() -> None:
    row = replace(ROW, epoch=epoch_of(2, 1), site=WEST, timeline=Timeline(2), durability=Durability.EXPOSED)
    opened = LINEAGE.opened(replace(row, phase=Phase.OPENED, cause="takeover"))
    stored = replace(PIPELINE, stored=frozenset({STAGE.name}), lanes={})
    answers = [_seen(opened, 2), DONE, _seen(opened, 2), ports.Unreachable(), DONE, DONE, DONE, DONE]
    result, effects = _told(take_over(stored, WEST, 1, EAST), answers)
    assert result.replayed == 0
    assert "ReadJournal" not in _names(effects)
    replayed, effects = _told(take_over(PIPELINE, WEST, 1, EAST), [_seen(opened, 2), ports.Unreachable()])
    assert isinstance(replayed, Unfinished)
    assert _names(effects)[-1] == "ReadJournal"


def test_a_closed_gate_is_asked_a_few_times_and_another_history_only_once() -> None:
    standing = ports.Standing(LINEAGE, Timeline(1), 7)
    behind = GateAnswer(True, 7, Timeline(1), FIRST, Lsn(1))
    result, effects = _told(pass_gate(standing, Lsn(9)), [behind] * QUESTIONS)
    assert (result, len(effects)) == (None, QUESTIONS)
    result, effects = _told(pass_gate(standing, Lsn(9)), [replace(behind, in_recovery=False)])
    assert (result, len(effects)) == (None, 1)


def test_an_exposed_epoch_may_be_told_to_hold_everything() -> None:
    standing = ports.Standing(LINEAGE.changed(durability=Durability.EXPOSED), Timeline(1), 7)
    assert _told(pass_gate(standing, Lsn(9), release_exposed=False), [])[0] is None
    release, _ = _told(pass_gate(standing, Lsn(9)), [])
    assert release.answer is None


def test_a_refused_submission_is_certain_only_if_nothing_was_tried_before() -> None:
    first, _ = _told(submit(ProducerNumber(1), PartitionNumber(0), "i", b"1"), [ports.Refused("no")])
    assert first == ports.Refused("no")
    later, _ = _told(
        submit(ProducerNumber(1), PartitionNumber(0), "i", b"1"), [ports.Indefinite(), ports.Refused("no")]
    )
    assert later is None


def test_a_handler_may_emit_only_on_its_channels() -> None:
    with pytest.raises(Broken, match="a channel it does not have"):
        STAGE.partitions_of("mail")


def test_a_replay_that_gives_other_bytes_stops() -> None:
    head = first_head(FIRST, [ProducerNumber(1)])
    _, segment = advance(
        head,
        producers=[ProducerNumber(1)],
        serials=[Serial(1)],
        digests=[digest_of(b"[1,2]")],
        decided_at=0,
        version="1",
        owed={},
        hint=None,
    )
    with pytest.raises(Broken, match="another output chain"):
        Replay(STAGE, head).apply(segment, [b"[1,2]"])
    with pytest.raises(Broken, match="another input chain"):
        Replay(STAGE, replace(head, chain=type(GENESIS)(b"x" * 32))).apply(segment, [b"[1,2]"])
    with pytest.raises(Broken, match="have no row"):
        require_rows(segment, [])
    assert segment.segment == SegmentNumber(1)


def test_the_topology_of_two_stages_feeds_the_second_from_the_first() -> None:
    topology = make_topology(
        partitions=2, producers=2, receiver=ReceiverClass.R1, policy=DoubtPolicy.HOLD, two_stages=True
    )
    inner = [feed for feed in topology.feeds if feed.lane is not None]
    assert len(inner) == 4
    assert {feed.consumer for feed in inner} == {"d"}
