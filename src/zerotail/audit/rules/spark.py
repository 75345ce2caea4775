"""Rules about the options with which Spark reads Kafka: ours, and those whose files were given."""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.audit.facts import SparkFacts
from zerotail.audit.rule import AnyRule, Rule, Violation

_SPLITTING = ("minPartitions", "maxRecordsPerPartition")


def _goes_on_behind_a_gap(reader: SparkFacts) -> Iterator[Violation]:
    if not reader.settings.switch("failOnDataLoss"):
        yield Violation(reader.settings.shown("failOnDataLoss"))


def _splits(reader: SparkFacts) -> Iterator[Violation]:
    for option in _SPLITTING:
        if reader.settings.find(option) is not None:
            yield Violation(reader.settings.shown(option), {"option": option})


def _begins_at_the_end(reader: SparkFacts) -> Iterator[Violation]:
    if not reader.keeps_place and reader.settings["startingOffsets"].lower() == "latest":
        yield Violation(reader.settings.shown("startingOffsets"))


def _reads_aborted(reader: SparkFacts) -> Iterator[Violation]:
    if reader.settings["kafka.isolation.level"].lower() != "read_committed":
        yield Violation(reader.settings.shown("kafka.isolation.level"))


RULES: tuple[AnyRule, ...] = (
    Rule(
        id="spark-data-loss",
        title="Spark stops when records are missing",
        weight="loss",
        kind=SparkFacts,
        looks_at="failOnDataLoss",
        violations=_goes_on_behind_a_gap,
        why="A topic was made anew, or retention deleted what was not read: Spark writes a warning into a log and "
        "goes on with what is there.",
        default="true by default; false stands in many examples, because it makes an error go away.",
        repair="failOnDataLoss=true    # in {file}",
    ),
    Rule(
        id="spark-min-partitions",
        title="One task reads one partition",
        weight="loss",
        kind=SparkFacts,
        looks_at="minPartitions, maxRecordsPerPartition",
        violations=_splits,
        why="A partition is read by two tasks at once: the second half of its records is worked off before the "
        "first, and the withdrawal is refused that the deposit before it had paid for.",
        default="Not set by default: one task per partition.",
        repair="{option}    # remove it from {file}; for more tasks, more partitions",
    ),
    Rule(
        id="spark-isolation",
        title="Spark does not take records of aborted transactions",
        weight="risk",
        kind=SparkFacts,
        looks_at="kafka.isolation.level",
        violations=_reads_aborted,
        why="A transactional producer or a mirror fails and aborts; the query has taken its records already, and takes "
        "them again from the repeated transaction.",
        default="read_uncommitted: the connector leaves it to the Java client.",
        repair="kafka.isolation.level=read_committed    # in {file}",
    ),
    Rule(
        id="spark-starting-offsets",
        title="A query without a checkpoint does not begin at the end",
        weight="risk",
        kind=SparkFacts,
        looks_at="startingOffsets of a query whose only memory is its checkpoint",
        violations=_begins_at_the_end,
        why="The checkpoint is deleted, or the query is started under a new name: it begins at the end, and what was "
        "written since the last batch is never read.",
        default="latest for streaming queries.",
        repair="startingOffsets=earliest    # in {file}, or offsets that were kept elsewhere",
    ),
)
