"""The settings of a Kafka cluster as both clients want them: librdkafka, and the Java client in Spark's connector."""

# ruff: noqa: S106 - no password here opens anything

from __future__ import annotations

from pathlib import Path

import pytest

from zerotail.config.client import ALLOWED_SETTINGS
from zerotail.errors import Misused
from zerotail.kafka.cluster import Cluster

pytestmark = pytest.mark.fast

KEY = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n"


def cluster(**settings: str) -> Cluster:
    """A cluster whose settings are given with underscores for dots."""
    return Cluster("e1:9093,e2:9093", tuple((name.replace("_", "."), value) for name, value in settings.items()))


def java(**settings: str) -> dict[str, str]:
    """The Java client's settings without the brokers."""
    options = cluster(**settings).for_connector()
    assert options.pop("kafka.bootstrap.servers") == "e1:9093,e2:9093"
    assert all(name.startswith("kafka.") for name in options)
    return {name.removeprefix("kafka."): value for name, value in options.items()}


def test_librdkafka_gets_what_was_given_and_the_brokers() -> None:
    given = cluster(sasl_username="u", sasl_password="p")
    assert given.for_client() == {
        "bootstrap.servers": "e1:9093,e2:9093",
        "sasl.username": "u",
        "sasl.password": "p",
    }


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
def test_a_login_becomes_the_configuration_of_a_login_module(mechanism: str, module: str) -> None:
    assert java(security_protocol="sasl_ssl", sasl_mechanism=mechanism, sasl_username="u", sasl_password="p") == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="u" password="p";',
    }


def test_a_password_cannot_leave_its_quotes() -> None:
    said = java(sasl_mechanism="PLAIN", sasl_username="u", sasl_password='a"b\\c\nd\re; x="y')["sasl.jaas.config"]
    assert said.endswith('username="u" password="a\\"b\\\\c\\nd\\re; x=\\"y";')
    assert "\n" not in said


@pytest.mark.parametrize(
    "settings",
    [
        {"sasl_username": "u", "sasl_mechanism": "PLAIN"},
        {"sasl_password": "p", "sasl_mechanism": "PLAIN"},
        {"sasl_username": "u", "sasl_password": "p"},
        {"sasl_username": "u", "sasl_password": "p", "sasl_mechanism": "GSSAPI"},
    ],
)
def test_half_a_login_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(Misused, match="go together"):
        cluster(**settings).for_connector()


def test_certificates_come_as_texts_or_from_files(tmp_path: Path) -> None:
    expected = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CERTIFICATE,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": CERTIFICATE,
        "ssl.keystore.key": KEY,
        "ssl.key.password": "k",
    }
    assert java(ssl_ca_pem=CERTIFICATE, ssl_certificate_pem=CERTIFICATE, ssl_key_pem=KEY, ssl_key_password="k") == (
        expected
    )
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    certificate.write_text(CERTIFICATE)
    key.write_text(KEY)
    in_files = java(
        ssl_ca_location=str(certificate),
        ssl_certificate_location=str(certificate),
        ssl_key_location=str(key),
        ssl_key_password="k",
    )
    assert in_files == expected


def test_a_key_store_is_the_one_that_librdkafka_reads() -> None:
    assert java(ssl_keystore_location="/etc/own.p12", ssl_keystore_password="s") == {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "/etc/own.p12",
        "ssl.keystore.password": "s",
    }


def test_an_own_certificate_without_its_key_is_refused() -> None:
    for half in ({"ssl_certificate_pem": CERTIFICATE}, {"ssl_key_pem": KEY}):
        with pytest.raises(Misused, match="its key go together"):
            cluster(**half).for_connector()


def test_a_key_that_the_java_client_cannot_read_is_refused_with_the_line_that_converts_it() -> None:
    old = KEY.replace("PRIVATE", "RSA PRIVATE")
    with pytest.raises(Misused, match="PKCS #8") as refused:
        cluster(ssl_certificate_pem=CERTIFICATE, ssl_key_pem=old).for_connector()
    assert "openssl pkcs8 -topk8" in refused.value.tries[0]
    locked = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")
    assert java(ssl_certificate_pem=CERTIFICATE, ssl_key_pem=locked)["ssl.keystore.key"] == locked


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misused, match=r"ssl\.ca\.location .*nowhere cannot be read: No such file"):
        cluster(ssl_ca_location=str(tmp_path / "nowhere")).for_connector()


@pytest.mark.parametrize("name", ["ssl.crl.location", "ssl.cipher.suites", "sasl.kerberos.keytab", "ssl.new.thing"])
def test_security_that_the_java_client_cannot_express_is_refused(name: str) -> None:
    with pytest.raises(Misused, match=f"no counterpart of {name}"):
        Cluster("e1:9093", ((name, "x"),)).for_connector()


def test_every_security_setting_that_a_configuration_may_give_is_translated_or_refused() -> None:
    security = sorted(name for name in ALLOWED_SETTINGS if name.startswith(("sasl.", "ssl.", "security.")))
    assert len(security) > 15
    for name in security:
        try:
            options = Cluster("e1:9093", ((name, CERTIFICATE),)).for_connector()
        except Misused:
            continue
        assert len(options) > 1, f"{name} is left out in silence"


def test_times_and_sizes_keep_their_meaning_and_what_is_librdkafkas_own_is_left_out() -> None:
    assert java(fetch_wait_max_ms="100", socket_receive_buffer_bytes="9", request_timeout_ms="7", linger_ms="3") == {
        "fetch.max.wait.ms": "100",
        "receive.buffer.bytes": "9",
        "request.timeout.ms": "7",
    }


def test_nothing_secret_shows_when_a_cluster_is_printed() -> None:
    assert "hush" not in repr(cluster(sasl_password="hush"))
