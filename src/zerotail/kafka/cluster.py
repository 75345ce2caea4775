"""How a Kafka cluster is reached: the one place from which every client gets brokers and security.

A configuration gives settings under librdkafka's names. Spark's connector is a Java client with other names for some of
them; what it cannot express is refused with a sentence instead of being left out, because a setting left out here would
be a connection without TLS there.

Certificates and keys are PEM texts or files. The Java client gets them as texts, so only the driver has to find the
files of what Spark reads; librdkafka opens the files itself, wherever it runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from zerotail.errors import Misused

_SAME_NAME = """
    sasl.mechanism sasl.kerberos.service.name client.id client.rack connections.max.idle.ms
    fetch.max.bytes fetch.min.bytes max.partition.fetch.bytes metadata.max.age.ms reconnect.backoff.max.ms
    reconnect.backoff.ms request.timeout.ms retry.backoff.ms socket.connection.setup.timeout.ms client.dns.lookup
"""
_ONE_TO_ONE = {
    **{name: name for name in _SAME_NAME.split()},
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "ssl.key.password": "ssl.key.password",
    "ssl.keystore.password": "ssl.keystore.password",
}
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PKCS8 = re.compile("-----BEGIN (ENCRYPTED )?PRIVATE KEY-----")
_SECURITY = ("sasl.", "ssl.", "security.")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers to ask first, and further settings of the client; it can travel to executors and be a key."""

    bootstrap: str
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def for_client(self) -> dict[str, str]:
        """Settings for librdkafka."""
        return {**dict(self.settings), "bootstrap.servers": self.bootstrap}

    def for_connector(self) -> dict[str, str]:
        """Options for Spark's Kafka connector: the Java client's settings, each behind `kafka.`."""
        return {f"kafka.{name}": value for name, value in self.for_java().items()}

    def for_java(self) -> dict[str, str]:
        """Settings of the Java client."""
        given = dict(self.settings)
        said = {"bootstrap.servers": self.bootstrap}
        said |= {_ONE_TO_ONE[name]: given.pop(name) for name in list(given) if name in _ONE_TO_ONE}
        if "security.protocol" in given:
            said["security.protocol"] = given.pop("security.protocol").upper()
        said |= _login(given, said.get("sasl.mechanism", ""))
        said |= _certificates(given)
        unknown = sorted(name for name in given if name.startswith(_SECURITY))
        if unknown:
            raise Misused(
                f"Spark's Kafka connector has no counterpart of {', '.join(unknown)}.",
                code="ZT503",
                why="Leaving a security setting out would connect otherwise than was meant.",
                tries=["ssl.ca.location, ssl.certificate.location and ssl.key.location with PEM files"],
            )
        return said


def _login(given: dict[str, str], mechanism: str) -> dict[str, str]:
    """User and password as the Java client wants them: as the configuration of a login module."""
    user, password = given.pop("sasl.username", None), given.pop("sasl.password", None)
    if user is None and password is None:
        return {}
    module = _LOGIN.get(mechanism)
    if module is None or user is None or password is None:
        raise Misused(
            "sasl.username and sasl.password go together, with sasl.mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.",
            code="ZT503",
        )
    return {"sasl.jaas.config": f"{module} required username={_quoted(user)} password={_quoted(password)};"}


def _certificates(given: dict[str, str]) -> dict[str, str]:
    """PEM texts and files: the Java client takes the same format under other names."""
    said: dict[str, str] = {}
    trusted = _pem(given, "ssl.ca")
    if trusted is not None:
        said |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
    if "ssl.keystore.location" in given:
        said |= {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": given.pop("ssl.keystore.location")}
    own, key = _pem(given, "ssl.certificate"), _pem(given, "ssl.key")
    if key is not None and not _PKCS8.search(key):
        raise Misused(
            "the key of the client's certificate is not in the format PKCS #8, which Spark's Kafka connector needs.",
            code="ZT503",
            tries=["openssl pkcs8 -topk8 -in old.pem -out new.pem    # librdkafka reads that as well"],
        )
    if own is not None and key is not None:
        said |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": own, "ssl.keystore.key": key}
    elif own is not None or key is not None:
        raise Misused("a client's own certificate and its key go together.", code="ZT503")
    return said


def _pem(given: dict[str, str], prefix: str) -> str | None:
    text, path = given.pop(f"{prefix}.pem", None), given.pop(f"{prefix}.location", None)
    if text is not None or path is None:
        return text
    try:
        return Path(path).read_text()
    except OSError as error:
        raise Misused(f"{prefix}.location {path} cannot be read: {error.strerror}.", code="ZT503") from error


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
