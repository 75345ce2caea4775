"""A topic restored inside a takeover: completed, read in journal order, proven, and rebuilt where that was asked for.

It is the same restore that `zerotail restore run` carries out. What does not come to the recorded hashes, or to the
stored state, is `Broken` and ends the takeover before a stage goes live and before anything is sent.
"""

from __future__ import annotations

from functools import partial

from zerotail import ports
from zerotail.config import Configuration
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.restore.configured import places_of, rebuild_of, restore_seen
from zerotail.restore.place import Place
from zerotail.restore.plan import Wish
from zerotail.restore.seen import plan_restore


def restore_topic(configuration: Configuration, effect: ports.RestoreTopic) -> ports.TopicRestored:
    """Restore one partition of the topic that a stage reads."""
    topic = configuration.stages[effect.stage].consumes
    (place,) = places_of(configuration, effect.site, topic, effect.partition)
    strategy = RestoreStrategy(effect.strategy)
    wish = Wish(strategy, memory_bytes=int(configuration.restore.memory), spark=strategy is RestoreStrategy.SORT)
    if wish.spark:
        return _sort(configuration, place, wish, rebuild=effect.rebuild)
    done = restore_seen(configuration, plan_restore(place, wish), rebuild=effect.rebuild)
    return ports.TopicRestored(done.outcome.writes, done.records)


def _sort(configuration: Configuration, place: Place, wish: Wish, *, rebuild: bool) -> ports.TopicRestored:
    # Only whoever sorts needs a JVM.
    from zerotail.spark.restore_job import restore_with_spark

    make_rebuild = partial(rebuild_of, configuration) if rebuild else None
    (done,) = restore_with_spark(configuration, [place], wish, lambda _line: None, make_rebuild=make_rebuild)
    return ports.TopicRestored(done.outcome.writes, done.records)
