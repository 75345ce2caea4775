"""Which features a cluster has switched on, asked with one request of Kafka's own protocol.

librdkafka asks the same at every connection and keeps the answer to itself. The request needs no login: brokers answer
it before one, and inside TLS where they want that.

    request    ApiVersions (18), version 3: header with a client's name, then the name and version of the software
    response   error, list of requests, throttle time, tagged fields; number 2 are the features that are switched on
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping

from zerotail.deadline import Deadline
from zerotail.errors import Unavailable
from zerotail.kafka.cluster import Cluster

_API_VERSIONS, _VERSION = 18, 3
_UNSUPPORTED_VERSION = 35
_FINALIZED_FEATURES = 2
_LARGEST_ANSWER = 1_000_000


def observe_features(cluster: Cluster, deadline: Deadline) -> Mapping[str, int]:
    """Features and their levels, from the first broker that answers; `Unavailable` with the reason of the last."""
    reason = "no address"
    for address in cluster.bootstrap.split(","):
        try:
            with _connected(address.strip(), dict(cluster.settings), deadline) as wire:
                wire.sendall(_request())
                return parse_features(_receive_answer(wire))
        except (OSError, UnicodeDecodeError) as error:
            reason = f"{address}: {error}"
    raise Unavailable(f"no broker told its features: {reason}", code="ZT502")


def parse_features(answer: bytes) -> Mapping[str, int]:
    """The features in an answer; none of a broker that is too old to have any."""
    reader = _Reader(answer)
    reader.take(4)  # which request it answers
    error = reader.number(2)
    if error == _UNSUPPORTED_VERSION:
        return {}
    if error:
        raise OSError(f"error {error}")
    for _ in range(reader.varint() - 1):
        reader.take(6)
        reader.tags()
    reader.take(4)  # throttle time
    found = reader.tags().get(_FINALIZED_FEATURES)
    if found is None:
        return {}
    reader = _Reader(found)
    features = {}
    for _ in range(reader.varint() - 1):
        name = reader.take(reader.varint() - 1).decode()
        features[name] = reader.number(2)
        reader.take(2)  # the lowest level
        reader.tags()
    return features


def _request() -> bytes:
    name = b"zerotail"
    header = struct.pack(">hhih", _API_VERSIONS, _VERSION, 1, len(name)) + name + b"\0"
    body = bytes([len(name) + 1]) + name + b"\x021" + b"\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


def _connected(address: str, settings: Mapping[str, str], deadline: Deadline) -> socket.socket:
    host, _, port = address.rpartition(":")
    wire = socket.create_connection((host.strip("[]"), int(port)), timeout=max(0.1, deadline.seconds_left))
    if not settings.get("security.protocol", "").upper().endswith("SSL"):
        return wire
    context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"), cadata=settings.get("ssl.ca.pem"))
    if certificate := settings.get("ssl.certificate.location"):
        context.load_cert_chain(certificate, settings.get("ssl.key.location"), settings.get("ssl.key.password"))
    return context.wrap_socket(wire, server_hostname=host)


def _receive_answer(wire: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _receive(wire, 4))
    if not 0 < size <= _LARGEST_ANSWER:
        raise OSError(f"an answer of {size} bytes")
    return _receive(wire, size)


def _receive(wire: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        piece = wire.recv(count - len(received))
        if not piece:
            raise OSError("the connection was closed")
        received += piece
    return received


class _Reader:
    """Kafka's primitive types, one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._content) - self._place:
            raise OSError("an answer that ends too early")
        self._place += count
        return self._content[self._place - count : self._place]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def varint(self) -> int:
        value, shift = 0, 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def tags(self) -> dict[int, bytes]:
        return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}
