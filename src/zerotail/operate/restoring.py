"""A topic restored inside a takeover: completed, read in journal order, proven, and rebuilt where that was asked for.

It is the same restore that `zerotail restore run` carries out. What does not come to the recorded hashes, or to the
stored state, is `Broken` and ends the takeover before a stage goes live and before anything is sent.
"""

from __future__ import annotations

from zerotail import ports
from zerotail.config import Configuration
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.restore import Wish, plan_restore, run_restore
from zerotail.restore.configured import places_of
from zerotail.restore.rebuild import Rebuild
from zerotail.running.parts import plan_parts


def restore_topic(configuration: Configuration, effect: ports.RestoreTopic) -> ports.TopicRestored:
    """Restore one partition of the topic that a stage reads."""
    topic = configuration.stages[effect.stage].consumes
    (place,) = places_of(configuration, effect.site, topic, effect.partition)
    wish = Wish(RestoreStrategy(effect.strategy), memory_bytes=int(configuration.restore.memory))
    seen = plan_restore(place, wish)
    if not effect.rebuild:
        done = run_restore(seen)
        return ports.TopicRestored(done.outcome.writes, done.records)
    (part,) = plan_parts(configuration, (), [effect.stage]).stages
    rebuild = Rebuild(part.at(effect.partition), seen.recorded.journal)
    done = run_restore(seen, consume=rebuild.consume)
    rebuild.require_stored_state(place.dsn)
    return ports.TopicRestored(done.outcome.writes, done.records)
