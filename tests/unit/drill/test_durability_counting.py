"""The counting and the verdict of the durability drill, without a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zerotail.drill.durability.cells import CELLS, PRODUCT, Cell
from zerotail.drill.durability.drill import as_drill
from zerotail.drill.durability.faults import FAULTS, Fault
from zerotail.drill.durability.judgement import judge, spared
from zerotail.drill.durability.ledger import Ledger
from zerotail.drill.durability.result import CellFound, DurabilityResult, FaultPlayed
from zerotail.drill.durability.run import EACH_ONCE, QUICK, WHOLE, only
from zerotail.errors import Misused

pytestmark = pytest.mark.fast


def ledger_of(rounds: list[int], acknowledged: set[int]) -> Ledger:
    ledger = Ledger()
    for count in rounds:
        ledger.begin_round()
        ledger.take(count)
    for number in acknowledged:
        ledger.acknowledge(number)
    return ledger


def test_what_was_acknowledged_and_is_not_in_the_log_is_lost() -> None:
    count = ledger_of([3, 3], {0, 1, 2, 4}).count([0, 2, 5])
    assert (count.written, count.acknowledged, count.lost, count.lost_by_round) == (6, 4, 2, (1, 1))


def test_what_was_not_acknowledged_is_never_lost() -> None:
    assert ledger_of([5], set()).count([]).lost == 0


def test_a_number_that_is_there_three_times_is_repeated_twice() -> None:
    count = ledger_of([4], {0, 1, 2, 3}).count([0, 1, 1, 1, 2, 3, 3])
    assert (count.repeated, count.lost, count.found) == (3, 0, 4)


def test_an_empty_log_has_lost_everything_that_was_acknowledged() -> None:
    assert ledger_of([4], {0, 3}).count([]).lost == 2


def test_the_product_of_all_settings_is_played() -> None:
    assert len(set(PRODUCT)) == 3 * 2 * 2
    assert len({cell.name for cell in CELLS}) == len(CELLS)


def test_the_whole_drill_kills_fifty_leaders_that_may_take_nothing_with_them() -> None:
    plain = Cell("all", 2, unclean=False)
    kinds = [fault for fault in FAULTS if fault.kills_leader and fault.promises(plain)]
    assert sum(WHOLE.rounds[fault.name] for fault in kinds) >= 50
    assert set(EACH_ONCE.rounds) == set(WHOLE.rounds) == {fault.name for fault in FAULTS}
    assert QUICK.kills >= 1


def test_some_faults_are_played_as_often_as_in_the_whole_and_others_are_refused() -> None:
    assert only(["all-killed"]).rounds == {"all-killed": WHOLE.rounds["all-killed"]}
    with pytest.raises(Misused, match="there is no fault 'nonsense'"):
        only(["all-killed", "nonsense"])


def found(cell: Cell, fault: str, lost: int, repeated: int = 0, acknowledged: int = 100) -> CellFound:
    kind = next(one for one in FAULTS if one.name == fault)
    return CellFound(
        cell.name, cell.acks, cell.min_insync, cell.unclean, cell.idempotent, cell.flushed, fault,
        100, acknowledged, 100 - lost, lost, repeated, int(lost > 0), lost, kind.promises(cell),
    )  # fmt: skip


def played(fault: str, bit: int = 2) -> FaultPlayed:
    return FaultPlayed(fault, "", 2, 2, bit, ("seen",), 1.0)


def as_it_should_be() -> tuple[list[FaultPlayed], list[CellFound]]:
    cells = [
        found(cell, fault.name, lost=3 if fault.shows(cell) and not fault.promises(cell) else 0)
        for fault in FAULTS
        for cell in CELLS
    ]
    return [played(fault.name) for fault in FAULTS], cells


def test_a_run_as_it_should_be_passes() -> None:
    faults, cells = as_it_should_be()
    assert judge(faults, cells, 10).verdict == "passed"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
def test_one_lost_record_where_nothing_may_be_lost_fails(fault: Fault) -> None:
    faults, cells = as_it_should_be()
    promised = [one for one in cells if one.promised and one.fault == fault.name]
    assert promised
    for one in promised:
        spoiled = [replace(other, lost=1) if other is one else other for other in cells]
        judgement = judge(faults, spoiled, 10)
        assert judgement.verdict == "failed"
        assert judgement.reasons[0].startswith(f"{one.cell} lost 1 of 100")
        assert not judgement.reached["nothing_lost"]


def test_a_repeat_of_an_idempotent_producer_fails_and_one_of_another_does_not() -> None:
    faults, cells = as_it_should_be()
    for one in cells:
        spoiled = [replace(other, repeated=1) if other is one else other for other in cells]
        assert judge(faults, spoiled, 10).verdict == ("failed" if one.idempotent else "passed")


def test_a_fault_that_did_not_bite_leaves_it_undecided() -> None:
    faults, cells = as_it_should_be()
    assert judge([replace(faults[0], bit=1), *faults[1:]], cells, 10).verdict == "undecided"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
def test_a_fault_that_took_nothing_from_weaker_settings_leaves_it_undecided(fault: Fault) -> None:
    faults, cells = as_it_should_be()
    harmless = [replace(one, lost=0) if one.fault == fault.name else one for one in cells]
    assert judge(faults, harmless, 10).verdict == "undecided"


def test_a_cell_without_acknowledgements_leaves_it_undecided() -> None:
    faults, cells = as_it_should_be()
    assert judge(faults, [replace(cells[0], acknowledged=0, lost=0), *cells[1:]], 10).verdict == "undecided"


def test_figures_that_are_not_reached_are_told() -> None:
    faults, cells = as_it_should_be()
    assert judge(faults, cells, 901).reached == {"nothing_lost": True, "kills": False, "seconds": False}


def test_a_drill_counts_the_settings_that_promise_and_no_others() -> None:
    faults, cells = as_it_should_be()
    judgement = judge(faults, cells, 10)
    result = DurabilityResult(
        judgement.verdict, judgement.reasons, 16, 100, 400, 2, 10, {"kafka": "4"}, tuple(faults), tuple(cells),
        judgement.reached,
    )  # fmt: skip
    drill = as_drill(result, 1, "history", "report")
    promised = sum(one.promised and not spared(one) for one in cells)
    assert promised < sum(one.promised for one in cells), "what the emulation spares proves nothing"
    assert (drill.lost, drill.submitted, drill.received) == (0, 100 * promised, 100 * promised)
    assert sum(one.lost for one in cells) > 0
