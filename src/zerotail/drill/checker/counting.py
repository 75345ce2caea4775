"""Numbers that should come as 1, 2, 3, …: which came again, which came late, which never came.

Serials in a journal and emission numbers at a receiver are both of this kind. A number that is left out is
not yet wrong: if it comes later it was overtaken, and only if it never comes there is a gap.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Hole(NamedTuple, Generic[T]):
    """Numbers `first` … `next` - 1 that have not come, and the evidence of what went past them."""

    first: int
    next: int
    passed_by: T


class Late(NamedTuple, Generic[T]):
    """A number that came after a higher one."""

    number: int
    passed_by: T
    evidence: T


class Again(NamedTuple, Generic[T]):
    """A number that came once more."""

    number: int
    evidence: T


class Counting(Generic[T]):
    """One sequence as it really came. `T` is the evidence: the event that brought a number."""

    __slots__ = ("again", "holes", "last", "late")

    def __init__(self) -> None:
        self.last = 0
        self.again: list[Again[T]] = []
        self.late: list[Late[T]] = []
        self.holes: list[Hole[T]] = []

    def take(self, number: int, evidence: T) -> None:
        """The next number, whatever it is."""
        if number == self.last + 1:
            self.last = number
        elif number > self.last:
            self.holes.append(Hole(self.last + 1, number, evidence))
            self.last = number
        else:
            self._take_old(number, evidence)

    def take_run(self, first: int, count: int, evidence: T) -> None:
        """`count` consecutive numbers, in one step where they are the expected ones."""
        if first == self.last + 1:
            self.last += count
        else:
            for number in range(first, first + count):
                self.take(number, evidence)

    def has(self, number: int) -> bool:
        """Whether the number came at all."""
        return 1 <= number <= self.last and not any(hole.first <= number < hole.next for hole in self.holes)

    def _take_old(self, number: int, evidence: T) -> None:
        for index, hole in enumerate(self.holes):
            if hole.first <= number < hole.next:
                parts = (hole._replace(next=number), hole._replace(first=number + 1))
                self.holes[index : index + 1] = [part for part in parts if part.first < part.next]
                self.late.append(Late(number, hole.passed_by, evidence))
                return
        self.again.append(Again(number, evidence))
