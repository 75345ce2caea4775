"""Look at a place: its journal, its log, and what every strategy would take. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass

from zerotail.restore.observe import TopicState, observe_topic
from zerotail.restore.place import Place, Recorded, read_recorded
from zerotail.restore.plan import Wish, plan_partition
from zerotail.restore.report import PartitionPlan


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything a restore of one partition rests on."""

    place: Place
    recorded: Recorded
    state: TopicState
    plan: PartitionPlan
    wish: Wish


def plan_restore(place: Place, wish: Wish) -> Seen:
    """Look, and plan; `Broken` when the journal is damaged."""
    recorded = read_recorded(place)
    state = observe_topic(recorded.log_to_look_at(place), recorded.journal.order)
    return Seen(place, recorded, state, plan_partition(recorded.journal, recorded.topic, state, wish), wish)
