"""Which settings of the Kafka client a configuration may give.

A list of what is allowed, not of what is forbidden: some client settings read files, open URLs or load
classes. The ones that the protocol rests on are set by zerotail and cannot be given at all; they get a
sentence of their own.
"""

from __future__ import annotations

from zerotail.config.problem import Unfit, did_you_mean, shown_word

_ALLOWED = """
    allow.auto.create.topics api.version.request.timeout.ms batch.num.messages batch.size
    broker.address.family broker.address.ttl client.dns.lookup client.id client.rack compression.level
    compression.type connections.max.idle.ms delivery.timeout.ms fetch.error.backoff.ms fetch.max.bytes
    fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms linger.ms
    max.partition.fetch.bytes message.max.bytes metadata.max.age.ms queue.buffering.max.kbytes
    queue.buffering.max.messages queued.max.messages.kbytes queued.min.messages
    receive.message.max.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
    retry.backoff.max.ms retry.backoff.ms sasl.kerberos.keytab sasl.kerberos.principal
    sasl.kerberos.service.name sasl.mechanism sasl.password sasl.username security.protocol
    session.timeout.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.nagle.disable
    socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.location ssl.ca.pem
    ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location ssl.key.location
    ssl.key.password ssl.key.pem ssl.keystore.location ssl.keystore.password
"""
ALLOWED_SETTINGS = frozenset(_ALLOWED.split())

FIXED_SETTINGS = {
    "acks": "all",
    "auto.offset.reset": "none",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.idempotence": "true",
    "enable.ssl.certificate.verification": "true",
    "isolation.level": "read_committed",
    "request.required.acks": "all",
    "ssl.endpoint.identification.algorithm": "https",
}
_SET_BY_US = """
    bootstrap.servers metadata.broker.list group.id group.instance.id transactional.id
    transaction.timeout.ms max.in.flight max.in.flight.requests.per.connection retries
    message.send.max.retries partitioner
"""
_OURS = frozenset(_SET_BY_US.split())


def require_client_setting(name: str) -> None:
    """`Unfit` unless a configuration may give this setting of the Kafka client."""
    if name in ALLOWED_SETTINGS:
        return
    if name in FIXED_SETTINGS:
        raise Unfit(f"cannot be changed: zerotail always runs with {FIXED_SETTINGS[name]}", "remove the line")
    if name in _OURS:
        raise Unfit("cannot be given: zerotail sets it itself", "remove the line")
    sentence = f"there is no Kafka client setting {shown_word(name)} that a configuration may give"
    raise Unfit(sentence, did_you_mean(name, sorted(ALLOWED_SETTINGS)))
