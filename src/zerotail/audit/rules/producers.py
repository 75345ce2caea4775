"""Rules about producer clients: ours, and those whose property files were given."""

from __future__ import annotations

from collections.abc import Iterator

from zerotail.audit.facts import ProducerFacts
from zerotail.audit.rule import AnyRule, Rule, Violation

IN_FLIGHT = "max.in.flight.requests.per.connection"
_FEW_RETRIES = 10
_PATIENCE_MILLISECONDS = 30_000
_BLOCK_MILLISECONDS = 5_000
_WRITTEN_DOWN = ("acks", "enable.idempotence")


def _acknowledged_early(producer: ProducerFacts) -> Iterator[Violation]:
    if producer.settings["acks"] != "all":
        yield Violation(producer.settings.shown("acks"))


def _not_idempotent(producer: ProducerFacts) -> Iterator[Violation]:
    settings = producer.settings
    if settings.switch("enable.idempotence"):
        return
    if settings.is_default("enable.idempotence") and producer.flavour == "java":
        yield Violation(f"enable.idempotence is not set, and switched off by {_forbids(producer)}")
    else:
        yield Violation(settings.shown("enable.idempotence"))


def _forbids(producer: ProducerFacts) -> str:
    settings = producer.settings
    given = [name for name in ("acks", "retries", IN_FLIGHT) if not settings.is_default(name)]
    return ", ".join(f"{name}={settings[name]}" for name in given)


def _gives_up(producer: ProducerFacts) -> Iterator[Violation]:
    if not producer.resends and producer.settings.number("retries") < _FEW_RETRIES:
        yield Violation(producer.settings.shown("retries"))


def _impatient(producer: ProducerFacts) -> Iterator[Violation]:
    # librdkafka takes 0 for no limit.
    patience = producer.settings.number("delivery.timeout.ms")
    if not producer.resends and 0 < patience < _PATIENCE_MILLISECONDS:
        yield Violation(producer.settings.shown("delivery.timeout.ms"))


def _overtakes(producer: ProducerFacts) -> Iterator[Violation]:
    settings = producer.settings
    most = 5 if settings.switch("enable.idempotence") else 1
    if settings.number(IN_FLIGHT) > most:
        state = "with" if most == 5 else "without"
        yield Violation(f"{settings.shown(IN_FLIGHT)} {state} idempotence", {"value": str(most)})


def _drops_when_full(producer: ProducerFacts) -> Iterator[Violation]:
    settings = producer.settings
    if producer.resends or producer.flavour == "librdkafka":
        return
    if not settings.switch("block.on.buffer.full"):
        yield Violation(settings.shown("block.on.buffer.full"))
    elif settings.number("max.block.ms") < _BLOCK_MILLISECONDS:
        yield Violation(settings.shown("max.block.ms"))


def _left_to_versions(producer: ProducerFacts) -> Iterator[Violation]:
    unsaid = [name for name in _WRITTEN_DOWN if producer.settings.is_default(name)]
    if unsaid:
        yield Violation(f"not set: {', '.join(unsaid)}")


RULES: tuple[AnyRule, ...] = (
    Rule(
        id="producer-acks",
        title="A record counts as sent when all in-sync copies have it",
        weight="loss",
        kind=ProducerFacts,
        looks_at="acks",
        violations=_acknowledged_early,
        why="The leader acknowledges, dies before a follower has fetched the record, and the new leader has never "
        "heard of it; with acks=0 it is enough that a connection breaks.",
        default="1 in Java clients before 3.0; all since then and in librdkafka.",
        repair="acks=all    # in {file}",
    ),
    Rule(
        id="producer-idempotence",
        title="A record that is sent again is stored once, in its place",
        weight="loss",
        kind=ProducerFacts,
        looks_at="enable.idempotence, and the settings that switch it off",
        violations=_not_idempotent,
        why="The acknowledgement is lost on its way, the client sends again, and the payment is in the topic twice.",
        default="false in librdkafka and in Java clients before 3.0; newer Java clients switch it off without an "
        "error when acks, retries or the requests in flight forbid it and nobody asked for it.",
        repair="enable.idempotence=true    # in {file}; the client then refuses settings that contradict it",
    ),
    Rule(
        id="producer-retries",
        title="A producer tries again until its time is up",
        weight="loss",
        kind=ProducerFacts,
        looks_at="retries",
        violations=_gives_up,
        why="A new leader is elected within seconds; a producer that tries a few times in a few hundred milliseconds "
        "has dropped its records by then.",
        default="2147483647 since 2.1, bounded by delivery.timeout.ms; it was 0 before, and old files still say 3.",
        repair="retries=2147483647    # in {file}, or remove the line",
    ),
    Rule(
        id="producer-delivery-timeout",
        title="A producer outlasts an election",
        weight="risk",
        kind=ProducerFacts,
        looks_at="delivery.timeout.ms of a producer whose records are nowhere else",
        violations=_impatient,
        why="A broker's restart takes twenty seconds, the producer drops after ten, and a service that only logs the "
        "callback's error has lost the record.",
        default="120000 in the Java client, 300000 in librdkafka.",
        repair="delivery.timeout.ms=120000    # in {file}; better: keep records in a table or a spool until "
        "acknowledged",
    ),
    Rule(
        id="producer-in-flight",
        title="No record overtakes one that is sent again",
        weight="loss",
        kind=ProducerFacts,
        looks_at="max.in.flight.requests.per.connection, and idempotence",
        violations=_overtakes,
        why="Of two requests on their way the first fails and is sent again behind the second: the cancellation is "
        "in the topic before the order.",
        default="5 in the Java client and 1000000 in librdkafka; with idempotence up to 5 keep their order, without "
        "it one.",
        repair="max.in.flight.requests.per.connection={value}    # in {file}",
    ),
    Rule(
        id="producer-buffer",
        title="A full buffer makes the service wait, not drop",
        weight="risk",
        kind=ProducerFacts,
        looks_at="max.block.ms, block.on.buffer.full",
        violations=_drops_when_full,
        why="Kafka is slow for a minute, the buffer is full, send() throws at once, and whatever the service does "
        "not keep elsewhere is gone.",
        default="The Java client waits 60000 ms; librdkafka never waits, its produce() answers that the queue is "
        "full and the program must try again.",
        repair="max.block.ms=60000    # in {file}",
    ),
    Rule(
        id="producer-unsaid",
        title="What safety rests on is written down",
        weight="risk",
        kind=ProducerFacts,
        looks_at="whether acks and enable.idempotence are set at all",
        violations=_left_to_versions,
        why="The service is built with another version or another client next year, whose defaults are acks=1 or no "
        "idempotence, and nobody sees a difference until a leader dies.",
        default="The defaults of both changed in Java 3.0, and librdkafka's differ from either.",
        repair="acks=all, enable.idempotence=true    # two lines in {file}",
    ),
)
