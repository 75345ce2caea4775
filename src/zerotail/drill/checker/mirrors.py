"""A mirror copies each record once, unchanged, in order, and leaves none out (S13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from zerotail.drill.checker.facts import Facts
from zerotail.drill.checker.finding import Finding
from zerotail.drill.history import MirrorCopy, MirrorSource


def mirror_agreement(facts: Facts) -> Iterator[Finding]:
    """S13: copies and their source coordinates correspond one to one, up to the highest that was copied."""
    sources: dict[tuple[str, int], list[MirrorSource]] = defaultdict(list)
    copies: dict[tuple[str, int], list[MirrorCopy]] = defaultdict(list)
    for event in facts.mirrored:
        if type(event) is MirrorSource:
            sources[event.mirror, event.partition].append(event)
        elif type(event) is MirrorCopy:
            copies[event.mirror, event.partition].append(event)
    for key, copied in copies.items():
        yield from _disagreement(sources.get(key, []), sorted(copied, key=lambda copy: copy.offset))


def _disagreement(sources: list[MirrorSource], copies: list[MirrorCopy]) -> Iterator[Finding]:
    by_offset = {source.offset: source for source in sources}
    copy_of: dict[int, MirrorCopy] = {}
    highest: MirrorCopy | None = None
    for copy in copies:
        source = by_offset.get(copy.source_offset)
        name = f"the copy at {copy.offset} of {copy.mirror}, partition {copy.partition},"
        first = copy_of.setdefault(copy.source_offset, copy)
        if first is not copy:
            yield Finding(f"{name} repeats the one at {first.offset}", (first, copy))
        elif highest is not None and copy.source_offset < highest.source_offset:
            yield Finding(f"{name} comes after a later record", (highest, copy))
        if source is None:
            yield Finding(f"{name} claims to be {copy.source_offset}, which does not exist", (copy,))
        elif source.digest != copy.digest:
            yield Finding(f"{name} differs from its source", (source, copy))
        if highest is None or copy.source_offset > highest.source_offset:
            highest = copy
    for source in sources:
        if highest is not None and source.offset < highest.source_offset and source.offset not in copy_of:
            yield Finding(f"record {source.offset} of {source.mirror} was left out", (source, highest))
