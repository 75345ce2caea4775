"""What sections must fulfil together."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.config.configurations import RIGHT, changed, found, loaded, said
from zerotail.config import HttpChannel

pytestmark = pytest.mark.fast

HTTP = 'bank: {kind: http, url: "https://bank.example/transfers", receiver: R1}'


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "{topic: payments}",
            "{topic: payment}",
            'producers.cards.topic: there is no topic named payment; did you mean "payments"?',
        ),
        (
            "consumes: ledger",
            "consumes: zzz",
            "stages.book.consumes: there is no topic named zzz; known are payments and ledger",
        ),
        (
            "[bank, booking]",
            "[bnak, booking]",
            'stages.settle.emits[0]: there is no channel named bnak; did you mean "bank"?',
        ),
        (
            "{kind: topic, topic: ledger}",
            "{kind: topic, topic: ledgre}",
            'channels.booking.topic: there is no topic named ledgre; did you mean "ledger"?',
        ),
        ("prefer: east", "prefer: East", 'prefer: there is no site named East; did you mean "east"?'),
    ],
)
def test_a_name_that_is_used_must_exist(tmp_path: Path, old: str, new: str, line: str) -> None:
    lines = said(tmp_path, changed(old, new))
    assert [one.split(": ", 1)[1] for one in lines] == [line]


def test_the_topic_of_a_kafka_channel_is_not_one_of_ours(tmp_path: Path) -> None:
    text = changed(HTTP, 'bank: {kind: kafka, bootstrap: "localhost:9092", topic: elsewhere, receiver: R0}')
    assert found(tmp_path, text) == ()


def test_there_are_exactly_two_sites(tmp_path: Path) -> None:
    third = '  west:\n    kafka: {bootstrap: "n:1"}\n    database: {dsn: "host=n"}\n  third:'
    lines = said(tmp_path, changed("  west:", third))
    assert any("sites: must name exactly two sites; there are 3" in line for line in lines)
    one = RIGHT[: RIGHT.index("  west:")] + RIGHT[RIGHT.index("prefer") :]
    assert any("sites: must name exactly two sites; there are 1" in line for line in said(tmp_path, one))


@pytest.mark.parametrize(
    "dsn",
    [
        "host=127.1.0.9 dbname=other user=someone",
        "host=LOCALHOST port=5432",
        "postgresql://zerotail@127.1.0.9/core",
        "postgresql://127.1.0.9:5432",
    ],
)
def test_the_sites_have_different_databases(tmp_path: Path, dsn: str) -> None:
    east = "localhost" if "LOCALHOST" in dsn else "127.1.0.9"
    text = changed("host=127.1.0.9", f"host={east}")
    (problem,) = found(tmp_path, changed("host=127.2.0.9 dbname=core user=zerotail", dsn, text))
    assert problem.sentence == "leads to the same database as that of east; each site has its own"
    assert problem.key == ("sites", "west", "database", "dsn")


def test_two_databases_on_one_host_differ_by_their_ports(tmp_path: Path) -> None:
    assert found(tmp_path, changed("host=127.2.0.9 dbname=core user=zerotail", "host=127.1.0.9 port=5433")) == ()


def test_databases_are_told_apart_by_their_references(tmp_path: Path) -> None:
    text = changed("host=127.1.0.9 dbname=core user=zerotail", "host=${env:EAST} sslmode=verify-full")
    apart = changed("host=127.2.0.9 dbname=core user=zerotail", "host=${env:WEST} sslmode=verify-full", text)
    alike = changed("host=127.2.0.9 dbname=core user=zerotail", "host=${env:EAST} sslmode=verify-full", text)
    environment = {"EAST": "a", "WEST": "b"}
    assert found(tmp_path, apart, environment) == ()
    assert len(found(tmp_path, alike, environment)) == 1


def test_the_sites_have_different_brokers(tmp_path: Path) -> None:
    text = changed("127.1.0.2:9092", "localhost:9092")
    (problem,) = found(tmp_path, changed("127.2.0.1:9092,127.2.0.2:9092", "127.2.0.1:9092,LOCALHOST:9092", text))
    assert problem.sentence == "names a broker that is also one of east; each site has its own cluster"


@pytest.mark.parametrize(
    "text",
    [
        "e1",
        "e1:",
        "e1:0",
        "e1:65536",
        "127.1.0.1:9092,",
        "e 1:9092",
        "127.1.0.1:9092,127.1.0.1:9092",
        "http://127.1.0.1:9092",
        ":1",
    ],
)
def test_brokers_are_hosts_with_ports(tmp_path: Path, text: str) -> None:
    (problem,) = found(tmp_path, changed("127.1.0.1:9092,127.1.0.2:9092", text))
    assert problem.key == ("sites", "east", "kafka", "bootstrap")


def test_an_address_of_ipv6_is_a_broker_too(tmp_path: Path) -> None:
    configuration = loaded(tmp_path, changed("127.1.0.1:9092,127.1.0.2:9092", "[::1]:9092, 127.1.0.2:9092"))
    assert configuration.sites["east"].kafka.bootstrap == "[::1]:9092,127.1.0.2:9092"  # type: ignore[index]


@pytest.mark.parametrize(
    "dsn",
    [
        "host=a host=b",
        "host",
        "host=a 'b",
        "host='a'b",
        "hostt=a",
        " ",
        "postgresql://a/b?sslmod=x",
        "host=a x=\\\\",
    ],
)
def test_connection_strings_are_those_of_libpq(tmp_path: Path, dsn: str) -> None:
    (problem,) = found(tmp_path, changed("host=127.1.0.9 dbname=core user=zerotail", dsn))
    assert problem.key == ("sites", "east", "database", "dsn")


def test_names_that_can_be_mistaken_for_each_other_are_refused(tmp_path: Path) -> None:
    text = changed(
        "ledger: {partitions: 2}",
        "ledger: {partitions: 2}, Pay-ments: {partitions: 1}, pay_ments: {partitions: 1}",
    )
    (problem,) = found(tmp_path, text)
    assert problem.key == ("topics", "pay_ments")
    assert problem.sentence == "differs from Pay-ments only in capitals, dots, - and _"


def test_a_cluster_does_not_have_the_name_of_a_site(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, RIGHT + 'clusters: {east: {bootstrap: "localhost:1"}}\n')
    assert problem.sentence == "is already the name of a site"


def test_a_channel_belongs_to_one_stage(tmp_path: Path) -> None:
    text = changed('handler: "shop.flows:Book"', 'handler: "shop.flows:Book", emits: [bank]')
    (problem,) = found(tmp_path, text)
    assert problem.sentence == "the channel bank already belongs to stage settle"
    (problem,) = found(tmp_path, changed("[bank, booking]", "[bank, booking, bank]"))
    assert problem.sentence == "the channel bank stands twice in this list"


BACK = changed('handler: "shop.flows:Book"', 'handler: "shop.flows:Book", emits: [back]')
BACK = changed("  booking:", "  back: {kind: topic, topic: payments}\n  booking:", BACK)


def test_stages_that_feed_each_other_in_a_circle_are_refused_once(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, BACK)
    assert problem.sentence == "the stages feed each other in a circle: settle → book → settle"


def test_a_circle_with_a_reason_is_accepted(tmp_path: Path) -> None:
    text = changed("emits: [back]", "emits: [back], feedback: corrections are booked again", BACK)
    assert found(tmp_path, text) == ()


def test_a_stage_that_feeds_itself_is_a_circle(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, changed("{kind: topic, topic: ledger}", "{kind: topic, topic: payments}"))
    assert problem.sentence == "the stages feed each other in a circle: settle → settle"


@pytest.mark.parametrize(
    ("mirror", "key", "sentence"),
    [
        ("topology: active-passive, source: east, target: east", "target", "east is both source and target"),
        (
            "topology: active-passive, source: east, target: wset",
            "target",
            "there is no site or cluster named wset",
        ),
        (
            "topology: active-passive, source: [east, hub], target: west",
            "",
            "active-passive has one source and one target",
        ),
        (
            "topology: hub-and-spoke, source: [east, hub], target: [west, far]",
            "",
            "several sources or several targets, not both",
        ),
        (
            "topology: active-active, engine: mm2, source: east, target: west",
            "",
            "in a circle when names are kept",
        ),
        (
            "topology: stretch, source: hub, target: west",
            "",
            "one cluster over several sites: nothing is mirrored",
        ),
        ("topology: active-passive, source: east", "", "active-passive needs a target"),
        (
            "topology: ring, source: east, target: west",
            "topology",
            "must be active-passive, active-active, hub-and-spoke or stretch",
        ),
    ],
)
def test_mirrors_join_two_different_clusters(tmp_path: Path, mirror: str, key: str, sentence: str) -> None:
    clusters = 'clusters: {hub: {bootstrap: "localhost:1"}, far: {bootstrap: "localhost:2"}}'
    text = f"{RIGHT}{clusters}\nmirrors: [{{{mirror}, topics: [audit]}}]\n"
    (problem,) = found(tmp_path, text)
    assert sentence in problem.sentence
    assert problem.key == ("mirrors", 0, *([key] if key else []))


@pytest.mark.parametrize("name", ["", "name: east-west, ", "name: East_West, "])
def test_two_mirrors_of_one_name_are_refused(tmp_path: Path, name: str) -> None:
    ends = "source: east, target: west"
    text = (
        f"{RIGHT}mirrors: [{{topology: active-passive, {ends}, topics: [a]}},\n"
        f"  {{{name}topology: active-passive, {ends}, topics: [b]}}]\n"
    )
    (problem,) = found(tmp_path, text)
    assert problem.sentence.endswith("as mirrors[0] is")
    assert problem.suggestion == "give each mirror a name of its own"


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        ("topics: []", "mirrors[0].topics: must not be empty"),
        ('topics: ["("]', "mirrors[0].topics[0]: must be a regular expression, such as audit-.*"),
        (
            "topics: [a], engnie: spark",
            'mirrors[0].engnie: there is no key engnie here; did you mean "engine"?',
        ),
    ],
)
def test_a_problem_inside_a_list_has_its_place_in_the_list(tmp_path: Path, rest: str, line: str) -> None:
    text = f"{RIGHT}mirrors: [{{topology: active-passive, source: east, target: west, {rest}}}]\n"
    assert [one.split(": ", 1)[1] for one in said(tmp_path, text)] == [line]


def test_the_doubts_of_a_channel_are_at_most_its_window(tmp_path: Path) -> None:
    for given, window in [("", 1), (", window: 10", 10)]:
        text = changed(HTTP, f'bank: {{kind: http, url: "https://b.example", receiver: R3, policy: hold{given}}}')
        channel = loaded(tmp_path, text).channels["bank"]  # type: ignore[index]
        assert isinstance(channel, HttpChannel)
        assert channel.doubt_window == window


def test_settings_of_spark_begin_with_its_name(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, changed('{master: "local[2]"}', "{settings: {executor.memory: 2g}}"))
    assert problem.sentence == "must be the name of a Spark setting, such as spark.executor.memory"


def test_mirrors_of_every_topology_are_accepted(tmp_path: Path) -> None:
    text = (
        f'{RIGHT}clusters: {{hub: {{bootstrap: "localhost:1"}}}}\nmirrors:\n'
        "  - {topology: active-passive, source: east, target: west, topics: [audit-.*]}\n"
        "  - {topology: active-active, engine: mm2, topic_names: prefixed, name: both, source: east,\n"
        "     target: west, topics: [a]}\n"
        "  - {topology: hub-and-spoke, source: [east, west], target: hub, topics: [b]}\n"
        "  - {topology: stretch, source: hub, topics: [c]}\n"
    )
    assert [mirror.source for mirror in loaded(tmp_path, text).mirrors][2] == ("east", "west")


@pytest.mark.parametrize(
    ("channel", "sentence"),
    [
        (
            'kind: http, url: "https://b.example", receiver: R0',
            "class R0 is asked for its last number; add last_number_url",
        ),
        (
            'kind: http, url: "https://b.example", receiver: R2',
            "class R2 is asked for its last number; add last_number_url",
        ),
        (
            'kind: http, url: "https://b.example", receiver: R1, last_number_url: "https://b.example/n"',
            "R1 cannot say its last number",
        ),
        (
            'kind: http, url: "https://b.example", receiver: R3',
            "class R3 leaves doubts after a crash; add policy: hold",
        ),
        (
            'kind: http, url: "https://b.example", receiver: R1, policy: hold',
            "policy and window are for class R3",
        ),
        (
            'kind: http, url: "https://b.example", receiver: R1, window: 5',
            "policy and window are for class R3",
        ),
        (
            'kind: http, url: "https://b.example", receiver: R4',
            "must be R0, R1, R2 or R3 for a channel of kind http",
        ),
        ('kind: http, url: "https://b.example", receiver: R3, policy: drop', "must be hold or resend"),
        ("kind: http, receiver: R1", "the key url is missing"),
        ('kind: http, url: "https://b.example"', "the key receiver is missing"),
        ('kind: http, url: "https://b.example", receiver: R1, topic: x', "there is no key topic here"),
        (
            'kind: kafka, bootstrap: "localhost:1", topic: x, receiver: R2',
            "must be R0 or R1 for a channel of kind kafka",
        ),
        (
            'kind: postgres, dsn: "host=localhost", table: inbox, receiver: R3',
            "must be R0 or R1 for a channel of kind postgres",
        ),
        ('kind: postgres, dsn: "host=localhost", table: "in;box", receiver: R0', "must be a table's name"),
        ("kind: topic, topic: ledger, receiver: R1", "must be R0 for a channel of kind topic"),
        (
            'kind: htpp, url: "https://b.example", receiver: R1',
            'must be http, kafka, postgres or topic; did you mean "http"?',
        ),
        ('url: "https://b.example", receiver: R1', "needs a kind: http, kafka, postgres or topic"),
        (
            'kind: http, url: "//b.example", receiver: R1',
            "must be a URL such as https://bank.example/transfers",
        ),
        ('kind: http, url: "https://", receiver: R1', "must be a URL"),
        ('kind: http, url: "https://b.example:x/", receiver: R1', "must be a URL"),
        ('kind: http, url: "https://b example/", receiver: R1', "must be a URL"),
    ],
)
def test_a_channel_has_the_keys_and_classes_of_its_kind(tmp_path: Path, channel: str, sentence: str) -> None:
    lines = said(tmp_path, changed(HTTP, f"bank: {{{channel}}}"))
    assert len(lines) == 1
    assert sentence in lines[0]


@pytest.mark.parametrize(
    "channel",
    [
        'kind: http, url: "https://b.example", receiver: R0, last_number_url: "https://b.example/last"',
        'kind: http, url: "http://127.0.0.1:8080/x?y=1", receiver: R3, policy: resend, window: 10',
        'kind: kafka, bootstrap: "localhost:1", topic: x.y, receiver: R1, settings: {compression.type: zstd}',
        'kind: postgres, dsn: "postgresql://zt@[::1]:5433/x", table: inbox, receiver: R0, timeout: 1s, batch: 1',
    ],
)
def test_channels_of_every_kind_are_accepted(tmp_path: Path, channel: str) -> None:
    assert found(tmp_path, changed(HTTP, f"bank: {{{channel}}}")) == ()


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("acks: 1", "cannot be changed: zerotail always runs with all"),
        ("enable.idempotence: false", "cannot be changed: zerotail always runs with true"),
        ("auto.offset.reset: latest", "cannot be changed: zerotail always runs with none"),
        ("ssl.endpoint.identification.algorithm: none", "cannot be changed: zerotail always runs with https"),
        ("transactional.id: mine", "cannot be given: zerotail sets it itself"),
        ("sasl.oauthbearer.token.endpoint.url: file:///x", "that a configuration may give"),
        ("sasl.jaas.config: x", "that a configuration may give"),
        ("plugin.library.paths: x", "that a configuration may give"),
        ("linger.mss: 5", 'did you mean "linger.ms"?'),
    ],
)
def test_dangerous_and_fixed_settings_of_the_client_are_refused(tmp_path: Path, setting: str, sentence: str) -> None:
    lines = said(tmp_path, changed('"127.1.0.1:9092,127.1.0.2:9092"', f'"127.1.0.1:9092", settings: {{{setting}}}'))
    assert len(lines) == 1
    assert sentence in lines[0]


def test_a_password_may_go_without_tls_to_this_machine_only(tmp_path: Path) -> None:
    text = changed('"127.1.0.1:9092,127.1.0.2:9092"', '"127.0.0.1:9092", settings: {security.protocol: SASL_PLAINTEXT}')
    assert found(tmp_path, text) == ()


@pytest.mark.parametrize(
    ("topic", "fits"),
    [
        ("partitions: 1, replication: 1, min_insync: 1", True),
        ("partitions: 1, replication: 3, min_insync: 3", True),
        ("partitions: 1, replication: 3, min_insync: 1", False),
        ("partitions: 1, replication: 2, min_insync: 3", False),
    ],
)
def test_acknowledged_records_survive_the_death_of_a_broker(tmp_path: Path, topic: str, fits: bool) -> None:
    problems = found(tmp_path, changed("{partitions: 4}", f"{{{topic}}}"))
    assert (problems == ()) is fits
    assert all("loses acknowledged records" in problem.sentence for problem in problems)


@pytest.mark.parametrize(
    ("producer", "sentence"),
    [
        ("topic: payments, source: spool", "needs the folder of the queue"),
        ("topic: payments, spool: queue", "has a meaning only with source: spool"),
        (
            "topic: payments, source: spool, spool: queue, table: orders",
            "table has no meaning with source: spool",
        ),
        (
            "topic: payments, source: spool, spool: queue, serials: given",
            "entries of a queue are numbered when they are drained",
        ),
        ("topic: payments, transform: shop.flows.to_record", "must name a Python object as module:name"),
    ],
)
def test_a_producer_has_one_source(tmp_path: Path, producer: str, sentence: str) -> None:
    (problem,) = found(tmp_path, changed("{topic: payments}", f"{{{producer}}}"))
    assert sentence in str(problem)


def test_checks_between_sections_speak_even_when_other_values_are_wrong(tmp_path: Path) -> None:
    text = changed("partitions: 4", "partitions: x")
    text = changed("[bank, booking]", "[bank, bookng]", text)
    assert [problem.key for problem in found(tmp_path, text)] == [
        ("topics", "payments", "partitions"),
        ("stages", "settle", "emits", 1),
    ]


def test_a_malformed_section_brings_no_further_problems_about_its_names(tmp_path: Path) -> None:
    text = changed("topics: {payments: {partitions: 4}, ledger: {partitions: 2}}", "topics: [payments, ledger]")
    assert [problem.key for problem in found(tmp_path, text)] == [("topics",)]
