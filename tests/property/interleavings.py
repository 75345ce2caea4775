"""Strategies that the property tests share: orders as records, one producer number per record."""

from __future__ import annotations

from hypothesis import strategies as st

from zerotail.core.identity import ProducerNumber, Serial

producer_numbers = st.integers(0, 2**32 - 1)


@st.composite
def interleavings(draw: st.DrawFn, max_producers: int = 16, max_records: int = 200) -> list[int]:
    """Producers, record by record: bursts and single records, some producers absent."""
    producers = draw(st.lists(producer_numbers, min_size=1, max_size=max_producers, unique=True))
    longest = draw(st.sampled_from([1, 3, 40]))
    runs = draw(
        st.lists(
            st.tuples(st.sampled_from(producers), st.integers(1, longest)), max_size=max_records // longest
        )
    )
    return [producer for producer, count in runs for _ in range(count)]


@st.composite
def vectors(draw: st.DrawFn, interleaving: list[int]) -> dict[ProducerNumber, Serial]:
    """A vector before an order: of some of its producers, and perhaps of one that it lacks."""
    numbers = sorted({*interleaving, draw(producer_numbers)})
    serials = draw(st.lists(st.integers(0, 2**40), min_size=len(numbers), max_size=len(numbers)))
    return {ProducerNumber(n): Serial(s) for n, s in zip(numbers, serials, strict=True) if s % 3}
