"""The verdict over all cells. Pure.

*failed*: a record was lost where nothing may be lost, or an idempotent producer's record is there twice. *undecided*:
nothing of that, but a fault was not seen to bite, a cell had nothing acknowledged, or no cell lost anything that a
fault of this kind takes from weaker settings: then the drill was too weak to show anything. Else *passed*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zerotail.drill.durability.cells import CELLS, Cell
from zerotail.drill.durability.faults import FAULTS
from zerotail.drill.durability.result import CellFound, FaultPlayed

WANTED_KILLS = 50
WANTED_SECONDS = 900.0
_PLAIN = Cell("all", 2, unclean=False)
_CELLS = {cell.name: cell for cell in CELLS}
_FAULTS = {fault.name: fault for fault in FAULTS}


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reasons."""

    verdict: str
    reasons: tuple[str, ...]
    reached: dict[str, bool]


def judge(
    faults: Sequence[FaultPlayed], cells: Sequence[CellFound], seconds: float, wanted_kills: int = WANTED_KILLS
) -> Judgement:
    """Judge what was found; a short run wants no kills."""
    wrong = [
        f"{one.cell} lost {one.lost} of {one.acknowledged} acknowledged records ({one.fault})"
        for one in cells
        if one.promised and one.lost
    ]
    wrong += [
        f"{one.cell} holds {one.repeated} records twice ({one.fault})"
        for one in cells
        if one.idempotent and one.repeated
    ]
    weak = [f"{one.name} bit in {one.bit} of {one.rounds} rounds only" for one in faults if one.bit < one.rounds]
    weak += [f"{one.cell} had nothing acknowledged ({one.fault})" for one in cells if not one.acknowledged]
    weak += [f"{one.name} took nothing from weaker settings either" for one in faults if not _showed(one, cells)]
    kills = sum(one.kills for one in faults if one.name in _promising(cells))
    kept = f"nothing lost in {sum(one.promised and not spared(one) for one in cells)} cells that promise it"
    return Judgement(
        verdict="failed" if wrong else "undecided" if weak else "passed",
        reasons=tuple([*wrong, *weak] or [kept]),
        reached={
            "nothing_lost": not wrong,
            "kills": kills >= wanted_kills,
            "seconds": seconds <= WANTED_SECONDS,
        },
    )


def spared(one: CellFound) -> bool:
    """Whether nothing could have been lost: power is cut by cutting logs, and never those of a flushed topic.

    A loss there is judged like any other; that there is none is no promise kept.
    """
    return one.flushed and _FAULTS[one.fault].cuts_power


def _promising(cells: Sequence[CellFound]) -> set[str]:
    """The faults that may take nothing from acks=all with two copies in sync and without unclean election."""
    return {one.fault for one in cells if one.promised and _CELLS[one.cell] == _PLAIN}


def _showed(played: FaultPlayed, cells: Sequence[CellFound]) -> bool:
    """Whether a cell lost something that is meant to show what the fault can do."""
    shows = _FAULTS[played.name].shows
    return any(one.lost for one in cells if one.fault == played.name and shows(_CELLS[one.cell]))
