"""The section of `docs/benchmarks.md` about the journal, made from a result and from nothing else; and its goal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from zerotail.bench.goals import Goal, table_of
from zerotail.bench.page import put_section
from zerotail.bench.result import JournalCost
from zerotail.bench.stored import Stored, told_stamps

NAME = "bench journal"
TARGET_BYTES = 1.0


def write_page(stored: Stored[JournalCost], page: Path) -> None:
    """Put the section into the page."""
    put_section(page, NAME, section_of(stored))


def goals_of(found: JournalCost) -> Iterator[Goal]:
    """The one there is."""
    yield Goal(
        "bytes_per_message",
        f"at most {TARGET_BYTES:g} byte of WAL per message, whole-page images included",
        f"{found.bytes_per_message:.2f}",
        found.bytes_per_message <= TARGET_BYTES,
    )


def section_of(stored: Stored[JournalCost]) -> str:
    """The tables, in Markdown."""
    found = stored.result
    lines = ["## Journal", "", *told_stamps(stored), "", *_introduction(found), "", *table_of(goals_of(found)), ""]
    return "\n".join([*lines, *_costs(found)]) + "\n"


def _introduction(found: JournalCost) -> Iterator[str]:
    yield (
        f"{found.messages:,} messages of two producers in random order, in segments of {found.messages_per_segment:,}, "
        "committed by the stage's own transaction to a database with nothing else in it: head, segment and commit "
        "record, without instructions, state and outbox. Bytes are the distance by which the write-ahead log grew."
    )


def _costs(found: JournalCost) -> Iterator[str]:
    yield "| per message | bytes of WAL | µs |"
    yield "|---|---|---|"
    yield (
        f"| a segment, behind a checkpoint: whole-page images included | {found.bytes_per_message:.2f} | "
        f"{found.seconds_per_message * 1e6:.2f} |"
    )
    yield f"| a segment, between checkpoints | {found.bytes_per_message_without_page_images:.2f} | – |"
    yield (
        f"| the same order as one row per message | {found.row_per_message_bytes:.0f} | "
        f"{found.row_per_message_seconds * 1e6:.2f} |"
    )
    yield ""
    yield (
        f"The interleaving itself is {found.order_bytes_per_segment:.0f} bytes of a segment: about a bit per record, "
        "which is what a random choice between two costs. Bursts cost less."
    )
