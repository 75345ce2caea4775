"""Rules about consumer clients: ours, and those whose property files were given."""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.audit.facts import ConsumerFacts
from zerotail.audit.rule import AnyRule, Rule, Violation

_RECORD_SECONDS = 0.1
"""What one record may take at least, where nobody said how long it does."""
_LONGEST_SECONDS = 1800
_SKIPPING = ("latest", "largest", "end")


def _commits_by_itself(consumer: ConsumerFacts) -> Iterator[Violation]:
    if consumer.settings.switch("enable.auto.commit"):
        yield Violation(consumer.settings.shown("enable.auto.commit"))


def _skips(consumer: ConsumerFacts) -> Iterator[Violation]:
    if consumer.settings["auto.offset.reset"].lower() in _SKIPPING:
        yield Violation(consumer.settings.shown("auto.offset.reset"))


def _reads_aborted(consumer: ConsumerFacts) -> Iterator[Violation]:
    if not consumer.keeps_place and consumer.settings["isolation.level"] != "read_committed":
        yield Violation(consumer.settings.shown("isolation.level"))


def _interrupted(consumer: ConsumerFacts) -> Iterator[Violation]:
    if consumer.keeps_place:
        return
    records = consumer.settings.number("max.poll.records")
    needed = records * (_RECORD_SECONDS if consumer.record_seconds is None else consumer.record_seconds)
    if consumer.settings.number("max.poll.interval.ms") / 1000 < needed:
        yield Violation(
            f"{consumer.settings.shown('max.poll.interval.ms')}, "
            f"and a batch of {records} at {needed / records:g} s each takes {needed:g} s",
            {"value": str(int(needed * 2000))},
        )


def _never_missed(consumer: ConsumerFacts) -> Iterator[Violation]:
    if not consumer.keeps_place and consumer.settings.number("max.poll.interval.ms") / 1000 > _LONGEST_SECONDS:
        yield Violation(consumer.settings.shown("max.poll.interval.ms"))


RULES: tuple[AnyRule, ...] = (
    Rule(
        id="consumer-auto-commit",
        title="A place is committed after the work, by the program",
        weight="loss",
        kind=ConsumerFacts,
        looks_at="enable.auto.commit",
        violations=_commits_by_itself,
        why="The client commits what it has handed out every five seconds; the service dies in the middle of a "
        "record, and its successor begins behind it.",
        default="true by default, in every client.",
        repair="enable.auto.commit=false    # in {file}; commit after the effect, or keep the place in its transaction",
    ),
    Rule(
        id="consumer-offset-reset",
        title="A reader without a place does not begin at the end",
        weight="loss",
        kind=ConsumerFacts,
        looks_at="auto.offset.reset",
        violations=_skips,
        why="The group's place was forgotten, or a partition was added and written to before the reader saw it: it "
        "begins at the end, and what lies before is never read.",
        default="latest (in librdkafka: largest) by default.",
        repair="auto.offset.reset=none    # in {file}; in librdkafka `error`; `earliest` where repeats do no harm",
    ),
    Rule(
        id="consumer-isolation",
        title="Records of aborted transactions are not taken",
        weight="risk",
        kind=ConsumerFacts,
        looks_at="isolation.level of a reader that does not judge records itself",
        violations=_reads_aborted,
        why="A transactional producer fails and aborts; the reader has taken its records already, and takes them "
        "again from the repeated transaction.",
        default="read_uncommitted in the Java client, read_committed in librdkafka.",
        repair="isolation.level=read_committed    # in {file}",
    ),
    Rule(
        id="consumer-poll-interval",
        title="A batch is worked off before the group gives up on its reader",
        weight="risk",
        kind=ConsumerFacts,
        looks_at="max.poll.interval.ms against max.poll.records and the time that a record takes",
        violations=_interrupted,
        why="A batch takes longer than the interval: the partition is given to another member while the first still "
        "works on it, both do the same records, and the first one's commit fails, again and again.",
        default="300000 ms for 500 records, which is 600 ms each; librdkafka hands out single records.",
        repair="max.poll.interval.ms={value}    # in {file}, or a smaller max.poll.records",
    ),
    Rule(
        id="consumer-poll-interval-long",
        title="A reader that hangs is missed within half an hour",
        weight="risk",
        kind=ConsumerFacts,
        looks_at="max.poll.interval.ms",
        violations=_never_missed,
        why="The reader hangs in a call that never returns, its heartbeats go on, and its partitions stand until "
        "somebody notices; longer than retention.ms, and records are deleted unread.",
        default="300000 by default; it is raised when batches were too slow once.",
        repair="max.poll.interval.ms=300000    # in {file}, with a smaller max.poll.records",
    ),
)
