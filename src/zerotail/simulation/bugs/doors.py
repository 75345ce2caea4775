"""Bugs of the way in: what is acknowledged, and what clients are told of it."""

# A replacement has the arguments of what it replaces, and reaches into modules from outside:
# mypy: disable-error-code="attr-defined, assignment, unreachable"

from __future__ import annotations

from typing import Any

from zerotail.core import intake
from zerotail.core.intake import AcceptedSerial
from zerotail.flow import submit
from zerotail.simulation.bugs.planting import Patch, bug
from zerotail.simulation.world import World


def _unfit_but_for(word: str) -> list[Patch]:
    original = intake.find_unfit

    def find(*arguments: Any) -> str:
        found = original(*arguments)
        return "" if word in found else found

    return [(intake, "find_unfit", find)]


@bug("any-partition-taken", "an instruction for a partition that is not there is acknowledged", "S1", "L2")
def _() -> list[Patch]:
    return _unfit_but_for("partitions")


@bug("any-size-taken", "an instruction is acknowledged that no record can hold", "L2")
def _() -> list[Patch]:
    return _unfit_but_for("a value has")


@bug("identifier-answers-for-another", "other bytes under a known identifier get the old serial", "S14", "S19")
def _() -> list[Patch]:
    return [(World, "compares_bytes", False)]


@bug("exposed-told-as-gated", "a client is told that both sites have what only one has", "E16")
def _() -> list[Patch]:
    return [(submit, "AcceptedSerial", lambda serial, _: AcceptedSerial(serial, "gated"))]


@bug("accepted-by-one-site", "a client that wants both sites is told that one has it", "E16")
def _() -> list[Patch]:
    original = submit.Durability

    class Never:
        EXPOSED = object()
        GATED = original.GATED

    return [(submit, "Durability", Never)]
