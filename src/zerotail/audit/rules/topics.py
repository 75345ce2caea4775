"""Rules about topics: those that exist with every partition's copies at this moment, and those still to be made."""

from __future__ import annotations

import json
from collections.abc import Iterator

from zerotail.audit.facts import DAY_SECONDS, NotSeen, PartitionFacts, PlannedTopicFacts, TopicFacts
from zerotail.audit.rule import AnyRule, Rule, Violation
from zerotail.audit.rules.clusters import COPIES, IN_SYNC

_CONFIGS = "kafka-configs.sh --bootstrap-server {bootstrap} --alter --entity-type topics --entity-name {topic}"
_ADD = f"{_CONFIGS} --add-config "
_REASSIGN = (
    "echo '{plan}' > plan.json && "
    "kafka-reassign-partitions.sh --bootstrap-server {bootstrap} --reassignment-json-file plan.json --execute"
)
_SHOWN = 5


def _few_copies(topic: TopicFacts) -> Iterator[Violation]:
    poor = [one for one in topic.partitions if len(one.replicas) < COPIES]
    if poor:
        yield Violation(f"replication factor {topic.copies} in {_partitions(poor)}", {"plan": _plan(topic)})


def _few_in_sync(topic: TopicFacts) -> Iterator[Violation]:
    if topic.settings.number("min.insync.replicas") < IN_SYNC:
        yield Violation(topic.settings.shown("min.insync.replicas"))


def _no_headroom(topic: TopicFacts) -> Iterator[Violation]:
    wanted = topic.settings.number("min.insync.replicas")
    if wanted > 1 and wanted >= topic.copies:
        yield Violation(
            f"{topic.settings.shown('min.insync.replicas')} with replication factor {topic.copies}",
            {"value": str(max(1, topic.copies - 1))},
        )


def _unclean(topic: TopicFacts) -> Iterator[Violation]:
    if topic.settings.switch("unclean.leader.election.enable"):
        yield Violation(topic.settings.shown("unclean.leader.election.enable"))


def _offline(topic: TopicFacts) -> Iterator[Violation]:
    headless = [one for one in topic.partitions if one.leader is None]
    if headless:
        yield Violation(f"no leader for {_partitions(headless)}", {"brokers": _missing(headless)})


def _under_replicated(topic: TopicFacts) -> Iterator[Violation]:
    behind = [one for one in topic.partitions if len(one.in_sync) < len(one.replicas)]
    if behind:
        first = behind[0]
        yield Violation(
            f"{_partitions(behind)}; of {first.partition}, "
            f"{len(first.in_sync)} of {len(first.replicas)} copies are in sync",
            {"brokers": _missing(behind)},
        )


def _last_copy(topic: TopicFacts) -> Iterator[Violation]:
    wanted = max(IN_SYNC, topic.settings.number("min.insync.replicas"))
    few = [one for one in topic.partitions if one.leader is not None and len(one.in_sync) < wanted]
    if few:
        yield Violation(f"in sync: {len(few[0].in_sync)} of {wanted} in {_partitions(few)}", {"brokers": _missing(few)})


def _one_rack(topic: TopicFacts) -> Iterator[Violation]:
    there_are = len(set(topic.racks.values()))
    crowded = [one for one in topic.partitions if len(_racks_of(topic, one)) < min(len(one.replicas), there_are)]
    if crowded:
        yield Violation(f"copies share racks in {_partitions(crowded)}", {"plan": _plan(topic)})


def _racks_of(topic: TopicFacts, partition: PartitionFacts) -> set[str | None]:
    dead = [str(broker) for broker in partition.replicas if broker not in topic.racks]
    if dead:
        raise NotSeen(f"nobody knows the rack of broker {', '.join(dead)}, which is not alive")
    return {topic.racks[broker] for broker in partition.replicas}


def _short_retention(topic: TopicFacts) -> Iterator[Violation]:
    if topic.is_compacted_only or topic.topic.startswith("__"):
        return
    milliseconds = topic.settings.number("retention.ms")
    if 0 <= milliseconds < topic.recovery_seconds * 1000:
        yield Violation(
            f"{topic.settings.shown('retention.ms')} is {_days(milliseconds / 1000)}, "
            f"and readers may be away for {_days(topic.recovery_seconds)}",
            {"value": str(topic.recovery_seconds * 1000)},
        )


def _limited_size(topic: TopicFacts) -> Iterator[Violation]:
    if not topic.is_compacted_only and topic.settings.number("retention.bytes") >= 0:
        yield Violation(topic.settings.shown("retention.bytes"))


def _compacted(topic: TopicFacts) -> Iterator[Violation]:
    if topic.ours and "compact" in topic.settings["cleanup.policy"]:
        yield Violation(topic.settings.shown("cleanup.policy"))


def _times_of_writers(topic: TopicFacts) -> Iterator[Violation]:
    if topic.ours and topic.settings["message.timestamp.type"] != "LogAppendTime":
        yield Violation(topic.settings.shown("message.timestamp.type"))


def _page_cache(topic: TopicFacts) -> Iterator[Violation]:
    if topic.settings.number("flush.messages") == 1:
        return
    together = [one for one in topic.partitions if len(_racks_of(topic, one)) < IN_SYNC]
    if together:
        yield Violation(
            f"{topic.settings.shown('flush.messages')}, and all copies are in one rack, or in one that nobody named, "
            f"in {_partitions(together)}"
        )


def _planned_weakly(topic: PlannedTopicFacts) -> Iterator[Violation]:
    seen = []
    if topic.replication < COPIES:
        seen.append(f"replication {topic.replication}")
    if not IN_SYNC <= topic.min_insync < max(topic.replication, COPIES):
        seen.append(f"min_insync {topic.min_insync}")
    if topic.retention_seconds < topic.recovery_seconds:
        seen.append(f"retention {_days(topic.retention_seconds)}, and readers may be away for longer")
    if seen:
        yield Violation(", ".join(seen), {"days": str(-(-topic.recovery_seconds // DAY_SECONDS))})


def _partitions(some: list[PartitionFacts]) -> str:
    numbers = ", ".join(str(one.partition) for one in some[:_SHOWN])
    more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
    return f"partition{'s' if len(some) > 1 else ''} {numbers}{more}"


def _missing(some: list[PartitionFacts]) -> str:
    gone = sorted({broker for one in some for broker in one.replicas if broker not in one.in_sync})
    return ", ".join(map(str, gone)) or "of the topic"


def _days(seconds: float) -> str:
    return f"{seconds / DAY_SECONDS:.3g} days"


def _plan(topic: TopicFacts) -> str:
    """Three copies for each partition, the present ones first, the rest where their rack has none yet."""
    placed = [
        {"topic": topic.topic, "partition": one.partition, "replicas": _places(topic, one)} for one in topic.partitions
    ]
    return json.dumps({"version": 1, "partitions": placed}, separators=(",", ":"))


def _places(topic: TopicFacts, partition: PartitionFacts) -> list[int]:
    alive = sorted(topic.racks)
    start = partition.partition % max(1, len(alive))
    leader = [] if partition.leader is None else [partition.leader]
    candidates = [*leader, *partition.replicas, *alive[start:], *alive[:start]]
    first_of_rack: dict[str, int] = {}
    for broker in candidates:
        first_of_rack.setdefault(topic.racks.get(broker) or f"broker {broker}", broker)
    wanted = max(COPIES, len(partition.replicas))
    return list(dict.fromkeys([*first_of_rack.values(), *candidates]))[:wanted]


RULES: tuple[AnyRule, ...] = (
    Rule(
        id="topic-replication",
        title="Every partition has three copies",
        weight="loss",
        kind=TopicFacts,
        looks_at="replicas of each partition",
        violations=_few_copies,
        why="With one copy a broken disk takes the records; with two, a disk that breaks while the other broker is "
        "being restarted does.",
        default="A topic gets default.replication.factor, which is 1 by default.",
        repair=_REASSIGN,
    ),
    Rule(
        id="topic-min-insync",
        title="A write is acknowledged with two copies at least",
        weight="loss",
        kind=TopicFacts,
        looks_at="min.insync.replicas of the topic",
        violations=_few_in_sync,
        why="Both followers lag and leave the in-sync set, the leader acknowledges alone, and dies: acks=all has "
        "promised nothing more than acks=1.",
        default="1 by default, whatever the replication factor is.",
        repair=f"{_ADD}min.insync.replicas=2",
    ),
    Rule(
        id="topic-min-insync-headroom",
        title="One copy may be missing without stopping writers",
        weight="risk",
        kind=TopicFacts,
        looks_at="min.insync.replicas below the replication factor",
        violations=_no_headroom,
        why="Restarting any broker stops all writers; whoever wants to help sets min.insync.replicas to 1 in the "
        "night, and the next fault loses what was acknowledged meanwhile.",
        default="No default is like this: it is set by hand, often on topics with two copies.",
        repair=f"{_ADD}min.insync.replicas={{value}}    # after topic-replication is kept",
    ),
    Rule(
        id="topic-unclean-election",
        title="No copy that is behind becomes leader of the topic",
        weight="loss",
        kind=TopicFacts,
        looks_at="unclean.leader.election.enable of the topic",
        violations=_unclean,
        why="The leader dies while a follower is behind: the follower becomes leader, and what it lacks is cut off "
        "everywhere, though it was acknowledged.",
        default="The broker's value, false since Kafka 0.11; a topic may say otherwise.",
        repair=f"{_ADD}unclean.leader.election.enable=false",
    ),
    Rule(
        id="topic-offline",
        title="Every partition has a leader",
        weight="loss",
        kind=TopicFacts,
        looks_at="leader of each partition, now",
        violations=_offline,
        why="Nobody can write or read: producers buffer until their delivery time-out and then drop, and the last "
        "resort, an unclean election, loses records.",
        default="Waiting for an in-sync copy is the default, and right; the brokers have to come back.",
        repair="systemctl start kafka    # on brokers {brokers} of {site}; no unclean election",
    ),
    Rule(
        id="topic-under-replicated",
        title="Every copy is in sync",
        weight="risk",
        kind=TopicFacts,
        looks_at="in-sync set against the replicas of each partition, now",
        violations=_under_replicated,
        why="A broker has been away since Monday: on Tuesday a second one fails, and with it the reserve that the "
        "replication factor had promised is used up.",
        default="Kafka goes on without a word while min.insync.replicas is met.",
        repair="systemctl status kafka    # on brokers {brokers} of {site}: down, slow, or its disk full?",
    ),
    Rule(
        id="topic-in-sync",
        title="At least two copies are in sync now",
        weight="loss",
        kind=TopicFacts,
        looks_at="size of the in-sync set against min.insync.replicas, now",
        violations=_last_copy,
        why="One copy has everything, the others do not: if its disk fails now, records are gone that were "
        "acknowledged before.",
        default="With acks=1, or min.insync.replicas=1, writers notice nothing of it.",
        repair="systemctl start kafka    # on brokers {brokers} of {site}, before any other broker is touched",
    ),
    Rule(
        id="topic-racks",
        title="Copies of a partition are in different racks",
        weight="risk",
        kind=TopicFacts,
        looks_at="broker.rack of the brokers that hold each partition",
        violations=_one_rack,
        why="Both in-sync copies stand in one rack, and its switch or fuse takes them together.",
        default="Copies are placed when a topic is made; racks that were named later move nothing.",
        repair=_REASSIGN,
    ),
    Rule(
        id="topic-retention",
        title="Records are kept longer than a reader may be away",
        weight="loss",
        kind=TopicFacts,
        looks_at="retention.ms against the recovery window",
        violations=_short_retention,
        why="A reader is down over a long weekend: records are deleted before it has seen them, and it goes on "
        "behind the gap.",
        default="604800000 (seven days), for read and unread records alike.",
        repair=f"{_ADD}retention.ms={{value}}",
    ),
    Rule(
        id="topic-retention-bytes",
        title="No size limit deletes records before their time",
        weight="risk",
        kind=TopicFacts,
        looks_at="retention.bytes",
        violations=_limited_size,
        why="Ten times the load on one day fills the limit in an hour, and a reader that is two hours behind loses "
        "the first one.",
        default="-1 (no limit); it is set to save disks.",
        repair=f"{_ADD}retention.bytes=-1    # and watch the disks",
    ),
    Rule(
        id="topic-cleanup",
        title="A topic in journal order keeps every record",
        weight="loss",
        kind=TopicFacts,
        looks_at="cleanup.policy of configured topics",
        violations=_compacted,
        why="Compaction keeps the last record of a key and removes those before it, also those that a stage has not "
        "taken.",
        default="delete by default; compact is set for tables.",
        repair=f"{_ADD}cleanup.policy=delete",
    ),
    Rule(
        id="topic-timestamp",
        title="Age is counted from the moment a record was appended",
        weight="loss",
        kind=TopicFacts,
        looks_at="message.timestamp.type of configured topics",
        violations=_times_of_writers,
        why="After a takeover the topic is refilled with records of last month: by their own timestamps they are "
        "older than retention.ms, and are deleted before the stage has read them.",
        default="CreateTime by default: the writer's time counts.",
        repair=f"{_ADD}message.timestamp.type=LogAppendTime",
    ),
    Rule(
        id="topic-flush",
        title="A power cut leaves one copy on a disk",
        weight="risk",
        kind=TopicFacts,
        looks_at="flush.messages, and the racks of each partition's copies",
        violations=_page_cache,
        why="Kafka acknowledges when records are in the page caches of the in-sync brokers: if all of them lose "
        "power at the same moment, records are gone that were acknowledged in the seconds before.",
        default="flush.messages is unlimited: the operating system writes when it likes. Copies on separate power "
        "are the intended remedy; flushing each record is the slow one.",
        repair=f"{_ADD}flush.messages=1    # or name the racks: see cluster-racks and topic-racks",
    ),
    Rule(
        id="topic-planned",
        title="A topic will be made with three copies, two of them in sync",
        weight="loss",
        kind=PlannedTopicFacts,
        looks_at="replication, min_insync and retention under `topics` in the configuration",
        violations=_planned_weakly,
        why="The topic is made by whichever process starts first, possibly in the middle of a takeover, and has the "
        "faults of topic-replication, topic-min-insync or topic-retention from its first record on.",
        default="3, 2 and seven days by default; a configuration may say less.",
        repair="topics: {{{topic}: {{replication: 3, min_insync: 2, retention: {days}d}}}}    # in zerotail.yaml",
    ),
)
