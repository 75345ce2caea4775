"""`mirror offsets`: observe a group at the source, translate its positions, set them at the target when asked to."""

from __future__ import annotations

from zerotail.core.copying import Place
from zerotail.core.identity import Offset, PartitionNumber, TopicName
from zerotail.core.provenance import Provenance
from zerotail.core.topology import Flow
from zerotail.errors import Refused
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.peek import LogWindow
from zerotail.kafka.places import Partition, Places
from zerotail.mirror.translation import Mine, Translated, find_first

_BACK = 10_000
"""How far back in the source a copy from the target is looked for."""


def translate_group(flow: Flow, source: Cluster, target: Cluster, group: str, shared: bool) -> tuple[Translated, ...]:
    """The positions of a group of the source as positions of the target; `shared` when other flows fill the topics."""
    here, there = Places(source, flow.source), Places(target, flow.target)
    positions = {one: offset for one, (offset, _) in here.committed(group, flow.takes).items()}
    if not positions:
        raise Refused(
            f"the group {group!r} has no positions at {flow.source} in topics that {flow.name} copies.",
            code="ZT492",
            tries=[f"zerotail mirror plan {flow.mirror}"],
        )
    if shared:
        raise Refused(
            f"several sources are copied into the same topics of {flow.target}: no position there is right for all.",
            code="ZT493",
            tries=["topic_names: prefixed    # keeps the sources apart"],
        )
    places = there.read(flow)
    return tuple(
        _translated(flow, source, target, one, Offset(position), places.get((flow.target_topic(one[0]), one[1])))
        for one, position in sorted(positions.items())
    )


def apply_positions(flow: Flow, target: Cluster, group: str, positions: tuple[Translated, ...]) -> None:
    """Set them at the target; the group must have no members there."""
    wanted = {
        (TopicName(one.target_topic), PartitionNumber(one.partition)): Offset(one.target_position) for one in positions
    }
    Places(target, flow.target).commit(group, wanted)


def _translated(
    flow: Flow, source: Cluster, target: Cluster, partition: Partition, wanted: Offset, place: Place | None
) -> Translated:
    topic, number = partition
    there = flow.target_topic(topic)
    log = LogWindow(target, there, number)
    try:
        begin, _ = log.bounds()
        offset, found = find_first(log, wanted, _from(flow.source, partition))
    finally:
        log.close()
    note, exact = "", True
    if found is not None and found > wanted and offset == begin:
        note = f"the target begins with offset {found} of the source"
    copied = place.next_offset if place is not None else Offset(0)
    if copied < wanted:
        note, exact = f"{wanted - copied} offsets that the group has read are not copied yet and will come again", False
    if flow.local_only:
        own = _first_unread_local(flow, source, partition, wanted)
        offset = offset if own is None else min(offset, own)
        note, exact = note or "both sides write here: nothing is left out, some may come again", False
    return Translated(topic, there, number, wanted, offset, exact, note)


def _first_unread_local(flow: Flow, source: Cluster, partition: Partition, position: Offset) -> Offset | None:
    """Of the records written at the target, the first one whose copy the group has not read at the source."""
    log = LogWindow(source, *partition)
    mine = _from(flow.target, partition)
    unread: Offset | None = None
    try:
        begin, _ = log.bounds()
        for offset, provenance in log.records(max(begin, Offset(position - _BACK))):
            found = mine(provenance)
            if found is not None and offset < position:
                unread = Offset(found + 1)
            elif found is not None:
                return found if unread is None else unread
    finally:
        log.close()
    return unread


def _from(cluster: str, partition: Partition) -> Mine:
    def mine(provenance: Provenance | None) -> Offset | None:
        if provenance is None:
            return None
        origin = provenance.origin
        same = (origin.cluster, origin.topic, origin.partition) == (cluster, *partition)
        return provenance.offset if same else None

    return mine
