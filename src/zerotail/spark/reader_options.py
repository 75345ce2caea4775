"""How our stages read a topic, as options of Spark's Kafka connector; apart, so that the audit can look at them.

Whatever a configuration gives is laid over these, and cannot touch what is `FIXED`.
"""

from __future__ import annotations

from collections.abc import Mapping

from zerotail.kafka.cluster import Cluster

_ANSWER_MILLISECONDS = 10_000
"""So long Kafka may take to answer; whoever gets no answer starts again, from what the database says."""
FIXED = {
    # Records are missing: the query ends, and the next start asks the database what to do.
    "failOnDataLoss": "true",
    # As every other reader of ours. A mirror that writes in transactions repeats what it had aborted.
    "kafka.isolation.level": "read_committed",
    "includeHeaders": "true",
}


def reader_options(cluster: Cluster) -> Mapping[str, str]:
    """All options but the topic and where to begin."""
    given = cluster.for_connector()
    patience = given.get("kafka.request.timeout.ms", str(_ANSWER_MILLISECONDS))
    return {
        # By default a topic that is gone is asked for a minute long, and a record that is gone for two.
        "kafka.request.timeout.ms": patience,
        "kafka.default.api.timeout.ms": patience,
        "kafkaConsumer.pollTimeoutMs": patience,
        "fetchOffset.numRetries": "1",
        # A task that comes to the end of the log waits so long for more, half a second by default, and a small batch
        # always does. Between two batches nobody asks, so asking often costs nothing.
        "kafka.fetch.max.wait.ms": "10",
        **given,
        **FIXED,
    }
