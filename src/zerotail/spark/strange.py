"""Records of a topic that are none of ours, and look as if they were: nobody may take them, nor pass them over unasked.

    a header of our size that this version cannot read
    a header with an epoch that the database has not opened, and a serial that is still to come

Such a record stops its partition (E18): as producer 0, with its offset plus 1 for a serial, in its log only. What
lies in front of it is taken. When an operator has decided to skip it, it is left out, without a place in the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zerotail.core.admission import FOREIGN
from zerotail.core.head import Head
from zerotail.core.identity import Serial
from zerotail.core.installation import Installation
from zerotail.core.poison import Poison, Remedy
from zerotail.core.record import HEADER_BYTES, decode, decode_column, digest_of
from zerotail.errors import Refused
from zerotail.flow.stage import Place, Stage, Taken
from zerotail.ports import Done, End, Pause, ReadHead, RecordPoison, Story
from zerotail.ports import Refused as Declined


@dataclass(frozen=True, slots=True)
class Sifted:
    """The records that may be taken, and the one behind them at which the partition stops."""

    table: pa.Table
    stopped: Poison | None
    asks_for_news: bool
    """Whether a newer epoch than the place knows was met: the database may know it by now."""


def sift(table: pa.Table, place: Place, log: str, installation: Installation) -> Sifted:
    """Leave out what need not be taken, and end in front of what must not be passed over."""
    keep: np.ndarray | None = None
    newer = False
    for index, why in _strange(table, place, installation):
        newer |= why.startswith(_NEWER)
        if keep is None:
            keep = np.ones(table.num_rows, dtype=bool)
        offset = table.column("offset")[index].as_py()
        digest = digest_of(table.column("header")[index].as_py())
        decision = place.decisions.get((FOREIGN, Serial(offset + 1)))
        if not why or (decision and (decision.remedy, decision.digest) == (Remedy.SKIP, digest)):
            keep[index] = False
            continue
        reason = f"offset {offset} of the topic: {why}"
        poison = Poison(FOREIGN, Serial(offset + 1), place.head.next_position, digest, reason, log)
        return Sifted(table.filter(pa.array(keep)).slice(0, int(keep[:index].sum())), poison, newer)
    return Sifted(table if keep is None else table.filter(pa.array(keep)), None, newer)


_NEWER = "its epoch "


def _strange(table: pa.Table, place: Place, installation: Installation) -> Iterator[tuple[int, str]]:
    """Where such records lie, and why they cannot be taken; no reason where they can be passed over.

    Those of another installation are foreign, whatever they say.
    """
    newest = place.standing.epoch
    try:
        if not np.any(decode_column(table.column("header"), installation).epochs > newest):
            return
    except Refused:
        pass  # one of them cannot be read: which one?
    for index, data in enumerate(table.column("header").to_pylist()):
        if data is None or len(data) != HEADER_BYTES:
            continue
        try:
            header = decode(data)
        except Refused as error:
            yield index, error.message
            continue
        last = place.head.vector.get(header.producer) if installation.owns(header.mark) else None
        if header.epoch > newest and last is not None:
            said = f"{_NEWER}{header.epoch} is newer than any that the database has opened"
            yield (
                index,
                f"{said} (serial {header.serial} of producer {header.producer})" if header.serial > last else "",
            )


def has_news(stage: Stage, place: Place) -> Story[bool]:
    """Whether the database has gone on since the place was read, or does not answer."""
    read = yield ReadHead(stage.name, stage.partition)
    standing, head = getattr(read, "standing", None), getattr(read, "head", None)
    return standing is None or head is None or standing.epoch != place.standing.epoch or head.token != place.head.token


def stop_at(stage: Stage, taken: Taken, poison: Poison) -> Story[Poison | End]:
    """Store that the partition stops at a record behind what was taken."""
    head: Head = taken.head
    found = Poison(poison.producer, poison.serial, head.next_position, poison.digest, poison.reason, poison.log)
    while True:
        stored = yield RecordPoison(stage.name, stage.partition, head.token, found)
        if isinstance(stored, Done):
            return found
        if isinstance(stored, Declined):
            return End.SUPERSEDED
        yield Pause("the database does not answer")
