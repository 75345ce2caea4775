"""Where a mirror goes on: the target's end, the place beside it, and what the source still has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerotail.core.copying import NOTHING, Go, Kind, Place, Run, SourceLog, Stop, TargetEnd, plan_start, read_place
from zerotail.core.identity import Offset

pytestmark = pytest.mark.fast

RUN = Run(3, "ab")
LOG = "topic-id"


def place(following: int, last: int, log: str = LOG) -> Place:
    return Place(Offset(following), Offset(last), log, RUN)


def end(last: int | None, *, whole: bool = True, log: str = LOG) -> TargetEnd:
    return TargetEnd(None if last is None else Offset(last), None if last is None else log, whole)


def source(first: int, following: int, log: str = LOG) -> SourceLog:
    return SourceLog(log, Offset(first), Offset(following))


@pytest.mark.parametrize(
    ("kept", "held", "offset", "last"),
    [
        (None, end(None), 5, NOTHING),  # a new mirror begins where the source begins
        (None, end(40), 41, 40),  # the place has expired: the end knows
        (place(50, 40), end(40), 50, 40),  # nine offsets had nothing to copy
        (place(50, NOTHING), end(None), 50, NOTHING),
        (place(50, 40), end(None, whole=False), 50, 40),  # retention has emptied the target
    ],
)
def test_a_mirror_goes_on_where_the_target_says(kept: Place | None, held: TargetEnd, offset: int, last: int) -> None:
    assert plan_start(kept, held, source(5, 100)) == Go(Offset(offset), Offset(last))


def test_what_the_target_lost_is_copied_again_and_said() -> None:
    went = plan_start(place(50, 49), end(29), source(5, 100))
    assert isinstance(went, Go)
    assert went.offset == 30
    assert "lost" in went.note
    emptied = plan_start(place(50, 49), end(None), source(5, 100))
    assert isinstance(emptied, Go)
    assert (emptied.offset, emptied.last_copied) == (5, NOTHING)
    assert "lost everything" in emptied.note


def test_a_place_that_was_set_back_copies_nothing_twice() -> None:
    went = plan_start(place(10, 9), end(49), source(5, 100))
    assert isinstance(went, Go)
    assert went.offset == 50


@pytest.mark.parametrize(
    ("kept", "held", "now", "kind", "goes_on_at"),
    [
        (place(50, 49), end(49), source(0, 10, "another"), Kind.RECREATED, 0),
        (None, end(49), source(0, 10, "another"), Kind.RECREATED, 0),
        (place(50, 49), end(49), source(0, 10), Kind.TRUNCATED, 10),
        (place(50, 49), end(49), source(60, 100), Kind.EXPIRED, 60),
        (None, end(None, whole=False), source(5, 100), Kind.FORGOTTEN, 5),
    ],
)
def test_a_source_that_does_not_fit_stops_the_partition_until_it_is_accepted(
    kept: Place | None, held: TargetEnd, now: SourceLog, kind: Kind, goes_on_at: int
) -> None:
    stopped = plan_start(kept, held, now)
    assert isinstance(stopped, Stop)
    assert stopped.kind is kind
    others = frozenset(Kind) - {kind}
    assert plan_start(kept, held, now, others) == stopped
    went = plan_start(kept, held, now, frozenset({kind}))
    assert isinstance(went, Go)
    assert went.offset == goes_on_at
    assert went.note


@given(st.integers(0, 50), st.integers(0, 50), st.integers(-1, 60), st.integers(0, 60), st.booleans(), st.booleans())
def test_no_offset_is_copied_twice_and_none_is_left_out(
    first: int, length: int, last: int, skipped: int, kept: bool, lost_tail: bool
) -> None:
    """The target holds a prefix of the source up to `last`, perhaps less than it once had."""
    following = first + length
    last = min(last, following - 1)
    held = max(-1, last - 3) if lost_tail else last
    stored = place(min(last + 1 + skipped, following), last) if kept and last >= 0 else None
    went = plan_start(stored, end(held if held >= 0 else None), source(first, following))
    if isinstance(went, Go):
        assert went.offset > held or held < 0
        if stored is None or lost_tail:
            assert went.offset <= max(held + 1, first)


@given(st.integers(0, 2**62), st.integers(-1, 2**62), st.integers(0, 2**31), st.text("abcdef0123456789", min_size=1))
def test_a_place_is_read_back_as_it_was_kept(following: int, last: int, generation: int, token: str) -> None:
    kept = Place(Offset(following), Offset(last), "AAAAAAAAQACAAAAAAAAAAQ", Run(generation, token))
    assert read_place(following, kept.metadata()) == kept


@pytest.mark.parametrize("metadata", ["", "x", "1 a b 2 c", "2 a 1 2 c", "1 a 1 x c", "1 a 1 2 c d"])
def test_an_offset_that_somebody_else_committed_is_no_place(metadata: str) -> None:
    assert read_place(5, metadata) is None


def test_the_newer_start_wins_and_a_token_decides_between_equals() -> None:
    assert Run(2, "a") > Run(1, "z")
    assert Run(2, "b") > Run(2, "a")
