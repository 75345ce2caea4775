"""The bytes of a segment that its chain covers: written anew from their description, not taken from the code that
wrote them, so that the two check each other. Drills and simulated runs are judged by the same version of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zerotail.core.head import Segment
from zerotail.core.identity import PartitionNumber, ProducerName, ProducerNumber, SegmentNumber, SiteName, StageName
from zerotail.core.poison import Decided, Remedy
from zerotail.drill.history import FinalSegment

SegmentName = tuple[SiteName, StageName, PartitionNumber, SegmentNumber]
_REMEDIES = {Remedy.SKIP: 1, Remedy.REPLACE: 2}


def decisions_of(
    site: SiteName, stage: StageName, partition: PartitionNumber, segments: Iterable[Segment]
) -> dict[SegmentName, Sequence[Decided]]:
    """What operators decided about records, by the segment that took them."""
    return {(site, stage, partition, one.segment): one.decided for one in segments if one.decided}


@dataclass(frozen=True, slots=True)
class ChainedBytes:
    """These bytes of any segment of a history, whose events lack two things: the numbers of the producers, and what
    was applied in place of a record, since a history holds no values.
    """

    numbers: Mapping[ProducerName, ProducerNumber]
    decided: Mapping[SegmentName, Sequence[Decided]]

    def __call__(self, segment: FinalSegment) -> bytes:
        version = segment.version.encode()
        content = struct.pack("<QQQq", segment.epoch, segment.segment, segment.first_position, segment.decided_at)
        content += struct.pack("<H", len(version)) + version
        for run in segment.runs:
            content += struct.pack("<IQI", self.numbers[run.producer], run.first_serial, run.count)
        content += b"".join(bytes.fromhex(digest) for digest in segment.inputs)
        name = (segment.site, segment.stage, segment.partition, segment.segment)
        for place, decision in self.decided.get(name, ()):
            content += struct.pack("<IBI", place, _REMEDIES[decision.remedy], len(decision.value)) + decision.value
        return content
