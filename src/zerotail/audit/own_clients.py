"""What our own Kafka clients run with: the settings in their code, with those of the configuration laid over. So do
the stages, which read through Spark's connector.

Our producers read their records from a table and send again what was not acknowledged, and stages drop repeats by
serial; our readers keep their place in the database and judge each record themselves. Rules that guard services without
such a memory do not apply to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from zerotail.audit.client_file import consumer_facts, producer_facts, spark_facts
from zerotail.audit.facts import ConsumerFacts, ProducerFacts, Subject
from zerotail.config import Configuration, KafkaChannel


def own_clients(configuration: Configuration, only: str | None = None) -> Iterator[Subject]:
    """Producers and readers of each site, and the writers of channels into topics outside."""
    from zerotail.kafka.cursor import SETTINGS as READING
    from zerotail.kafka.producer import SETTINGS as WRITING
    from zerotail.running.prepare import cluster_of
    from zerotail.spark.reader_options import reader_options

    for name, site in configuration.sites.items():
        if only in (None, name):
            given = {setting: value.reveal() for setting, value in site.kafka.settings.items()}
            yield _producer(f"our producers at {name}", {**WRITING, **given})
            yield _consumer(f"our readers at {name}", {**READING, **given})
            # Where to begin is given by the heads, at every start.
            stages = {"startingOffsets": "by the heads", **reader_options(cluster_of(configuration, name))}
            yield spark_facts(f"our stages at {name}", stages, keeps_place=True)
    for channel, outside in configuration.channels.items():
        if isinstance(outside, KafkaChannel):
            given = {setting: value.reveal() for setting, value in outside.settings.items()}
            yield _producer(f"our writer of channel {channel}", {**WRITING, **given})
            yield _consumer(f"our reader of channel {channel}", {**READING, **given})


def _producer(name: str, settings: Mapping[str, object]) -> ProducerFacts:
    return replace(producer_facts(name, _texts(settings), "librdkafka"), resends=True)


def _consumer(name: str, settings: Mapping[str, object]) -> Subject:
    facts = consumer_facts(name, _texts(settings), flavour="librdkafka")
    return replace(facts, keeps_place=True) if isinstance(facts, ConsumerFacts) else facts


def _texts(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}
