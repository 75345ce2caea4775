"""What leaves the machine is encrypted and proven, or named one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.config.configurations import RIGHT, changed, found, loaded
from zerotail.config.encryption import is_of_this_machine

pytestmark = pytest.mark.fast

KAFKA = '"127.1.0.1:9092,127.1.0.2:9092"'
DSN = "host=127.1.0.9 dbname=core user=zerotail"
BANK = '{kind: http, url: "https://bank.example/transfers", receiver: R1}'
SPARK = '{master: "local[2]"}'
FAR = '"127.1.0.1:9092,kafka.example:9092"'


def _weak(folder: Path, text: str) -> list[tuple[object, str]]:
    return [(problem.key, problem.sentence) for problem in found(folder, text, {"T": "x"})]


@pytest.mark.parametrize(
    ("text", "key", "sentence", "name"),
    [
        (changed(KAFKA, FAR), ("sites", "east", "kafka", "bootstrap"), "is not encrypted", "kafka.east"),
        (
            changed(KAFKA, f"{FAR}, settings: {{security.protocol: plaintext}}"),
            ("sites", "east", "kafka", "bootstrap"),
            "is not encrypted",
            "kafka.east",
        ),
        (
            changed(KAFKA, f"{FAR}, settings: {{security.protocol: sasl_plaintext}}"),
            ("sites", "east", "kafka", "settings", "security.protocol"),
            "would send the password over the network without TLS",
            "kafka.east",
        ),
        (
            changed(DSN, "host=pg.example dbname=core"),
            ("sites", "east", "database", "dsn"),
            "does not prove whom it talks to: sslmode is prefer",
            "database.east",
        ),
        (
            changed(DSN, "host=pg.example sslmode=verify-ca"),
            ("sites", "east", "database", "dsn"),
            "does not prove whom it talks to: sslmode is verify-ca",
            "database.east",
        ),
        (
            changed(DSN, "postgresql://zerotail@pg.example/core?sslmode=require"),
            ("sites", "east", "database", "dsn"),
            "does not prove whom it talks to: sslmode is require",
            "database.east",
        ),
        (
            changed(DSN, "service=core"),
            ("sites", "east", "database", "dsn"),
            "does not prove whom it talks to: sslmode is prefer",
            "database.east",
        ),
        (
            changed(
                BANK, '{kind: http, url: "http://bank.example/x", headers: {Authorization: "${env:T}"}, receiver: R1}'
            ),
            ("channels", "bank", "url"),
            "would send credentials over the network without TLS",
            "channel.bank",
        ),
        (
            changed(BANK, '{kind: http, url: "http://bank.example/x", headers: {X-Who: "we ${env:T}"}, receiver: R1}'),
            ("channels", "bank", "url"),
            "would send credentials over the network without TLS",
            "channel.bank",
        ),
        (
            changed(BANK, '{kind: http, url: "http://me:${env:T}@bank.example/x", receiver: R1}'),
            ("channels", "bank", "url"),
            "would send credentials over the network without TLS",
            "channel.bank",
        ),
        (
            changed(BANK, '{kind: http, url: "http://bank.example/x?key=${env:T}", receiver: R1}'),
            ("channels", "bank", "url"),
            "would send credentials over the network without TLS",
            "channel.bank",
        ),
        (
            changed(BANK, '{kind: kafka, bootstrap: "k.example:1", topic: x, receiver: R1}'),
            ("channels", "bank", "bootstrap"),
            "is not encrypted",
            "channel.bank",
        ),
        (
            changed(BANK, '{kind: postgres, dsn: "host=books.example", table: inbox, receiver: R0}'),
            ("channels", "bank", "dsn"),
            "does not prove whom it talks to: sslmode is prefer",
            "channel.bank",
        ),
        (
            f'{RIGHT}clusters: {{hub: {{bootstrap: "h.example:1"}}}}\n',
            ("clusters", "hub", "bootstrap"),
            "is not encrypted",
            "kafka.hub",
        ),
        (
            changed(SPARK, '{master: "spark://spark-east:7077"}'),
            ("spark", "master"),
            "lets anybody run code in the driver who reaches it: the cluster has no secret",
            "spark",
        ),
        (
            changed(SPARK, '{master: yarn, settings: {spark.authenticate: "false"}}'),
            ("spark", "settings", "spark.authenticate"),
            "lets anybody run code in the driver who reaches it",
            "spark",
        ),
    ],
)
def test_a_weak_connection_to_another_machine_is_a_problem_until_it_is_named(
    tmp_path: Path, text: str, key: tuple[str, ...], sentence: str, name: str
) -> None:
    (problem,) = found(tmp_path, text, {"T": "x"})
    assert (problem.key, problem.sentence) == (key, sentence)
    assert problem.suggestion.endswith(f"or list {name} under security.insecure")
    assert found(tmp_path, f"{text}security: {{insecure: [{name}]}}\n", {"T": "x"}) == ()


@pytest.mark.parametrize(
    "text",
    [
        changed(KAFKA, f"{FAR}, settings: {{security.protocol: sasl_ssl}}"),
        changed(DSN, "host=pg.example sslmode=verify-full"),
        changed(DSN, "host=/var/run/postgresql"),
        changed(DSN, "dbname=core"),
        changed(BANK, '{kind: http, url: "http://127.0.0.1/x", headers: {Authorization: "${env:T}"}, receiver: R1}'),
        changed(BANK, '{kind: http, url: "http://bank.example/x", receiver: R1}'),
        changed(SPARK, '{master: "spark://127.0.0.1:7077"}'),
        changed(SPARK, "{master: yarn}"),
        changed(
            SPARK,
            '{master: "spark://s:1", settings: {spark.authenticate.secret: "${env:T}"}}',
        ),
    ],
)
def test_what_is_encrypted_or_stays_here_needs_no_name(tmp_path: Path, text: str) -> None:
    assert _weak(tmp_path, text) == []


def test_a_name_of_no_connection_is_a_problem(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, f"{RIGHT}security: {{insecure: [kafka.esat]}}\n")
    assert (problem.key, problem.suggestion) == (("security", "insecure", 0), 'did you mean "kafka.east"?')


def test_an_address_by_reference_may_be_anybodys(tmp_path: Path) -> None:
    text = changed(DSN, "host=${env:T}")
    assert [key for key, _ in _weak(tmp_path, text)] == [("sites", "east", "database", "dsn")]


def test_the_names_are_part_of_the_configuration(tmp_path: Path) -> None:
    text = f"{changed(KAFKA, FAR)}security: {{insecure: [kafka.east]}}\n"
    assert loaded(tmp_path, text).security.insecure == ("kafka.east",)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("127.8.0.1", True),
        ("[::1]", True),
        ("", True),
        ("/run/pg", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("::ffff:10.0.0.1", False),
        ("127.0.0.1.example", False),
    ],
)
def test_loopback_is_what_the_address_says(host: str, here: bool) -> None:
    assert is_of_this_machine(host) is here
