"""What leaves this machine is encrypted and knows whom it talks to, unless the configuration names it as insecure.

    security:
      insecure: [kafka.east, database.west, channel.books]

1. Kafka is spoken to by TLS (`security.protocol`), PostgreSQL by `sslmode=verify-full`, a receiver that gets
   credentials by https; a Spark cluster knows who speaks to it (E26). Everything weaker is a problem of the
   configuration, one for each connection, with the name to list.
2. Loopback addresses and sockets of this machine need nothing of that.
3. An address that comes by reference may be anybody's: it counts as another machine's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from zerotail.config.address import brokers_of, connection_options, looks_secret
from zerotail.config.problem import Key, Problem, Unfit, shown_word, suggested
from zerotail.config.secret import has_reference, template_of
from zerotail.config.tree import Node, entries_of, find_text, origin_of_value, texts_of

_ENCRYPTED = {"SSL", "SASL_SSL"}
_INSECURE: Key = ("security", "insecure")
_MASTER: Key = ("spark", "master")
_SPARK_ASKS = ("spark.authenticate", "spark.network.crypto.enabled")
_SPARK_SECRET = "spark.authenticate.secret"  # noqa: S105 - the name of a setting


@dataclass(frozen=True, slots=True)
class Weakness:
    """A connection that anybody on the way could read, or answer in the place of the one who is meant."""

    name: str
    """As it is listed under `security.insecure`."""
    key: Key
    sentence: str
    remedy: str


def everything_is_encrypted(tree: Node) -> Iterator[Problem]:
    """A problem for each connection that is weak and not listed, and for each name that is nobody's."""
    listed = dict(texts_of(tree, _INSECURE))
    for weak in find_weaknesses(tree):
        if weak.name not in listed.values():
            suggestion = f"{weak.remedy}, or list {weak.name} under security.insecure"
            yield Problem(origin_of_value(tree, weak.key), weak.key, weak.sentence, suggestion)
    known = sorted(_connections(tree))
    for index, name in listed.items():
        if name not in known:
            key: Key = (*_INSECURE, index)
            sentence = f"there is no connection named {shown_word(name)}"
            yield Problem(origin_of_value(tree, key), key, sentence, suggested(name, known))


def find_weaknesses(tree: Node) -> Iterator[Weakness]:
    """Every connection that is not as it should be, listed or not."""
    for name, (kind, key) in _connections(tree).items():
        if kind == "kafka":
            yield from _weak_kafka(tree, name, key)
        elif kind == "http":
            yield from _weak_receiver(tree, name, key)
        elif kind == "spark":
            yield from _weak_spark(tree, name)
        else:
            yield from _weak_database(tree, name, (*key, "dsn"))


def _connections(tree: Node) -> dict[str, tuple[str, Key]]:
    """Every connection by its name: what it leads to, and the section that describes it."""
    found: dict[str, tuple[str, Key]] = {}
    for site in entries_of(tree, ("sites",)):
        found[f"kafka.{site}"] = ("kafka", ("sites", site, "kafka"))
        found[f"database.{site}"] = ("postgres", ("sites", site, "database"))
    for cluster in entries_of(tree, ("clusters",)):
        found[f"kafka.{cluster}"] = ("kafka", ("clusters", cluster))
    for channel in entries_of(tree, ("channels",)):
        kind = find_text(tree, ("channels", channel, "kind"))
        if kind in ("http", "kafka", "postgres"):
            found[f"channel.{channel}"] = (kind, ("channels", channel))
    if not (find_text(tree, _MASTER) or "local").startswith("local"):
        found["spark"] = ("spark", ("spark",))
    return found


def _weak_kafka(tree: Node, name: str, key: Key) -> Iterator[Weakness]:
    protocol = (find_text(tree, (*key, "settings", "security.protocol")) or "PLAINTEXT").upper()
    try:
        hosts = [broker.rpartition(":")[0] for broker in brokers_of(find_text(tree, (*key, "bootstrap")) or "")]
    except Unfit:
        return  # reported by its reader
    if protocol in _ENCRYPTED or all(map(is_of_this_machine, hosts)):
        return
    has_password = protocol == "SASL_PLAINTEXT"
    sentence = "would send the password over the network without TLS" if has_password else "is not encrypted"
    remedy = "use SASL_SSL" if has_password else "set settings security.protocol: SSL or SASL_SSL"
    at: Key = (*key, "settings", "security.protocol") if has_password else (*key, "bootstrap")
    yield Weakness(name, at, sentence, remedy)


def _weak_database(tree: Node, name: str, key: Key) -> Iterator[Weakness]:
    try:
        options = connection_options(template_of(find_text(tree, key) or ""))
    except Unfit:
        return
    hosts = (options.get("hostaddr") or options.get("host", "")).split(",")
    mode = options.get("sslmode", "prefer")
    is_far = "service" in options or not all(map(is_of_this_machine, hosts))
    if is_far and mode != "verify-full":
        sentence = f"does not prove whom it talks to: sslmode is {shown_word(mode)}"
        yield Weakness(name, key, sentence, "write sslmode=verify-full")


def _weak_receiver(tree: Node, name: str, key: Key) -> Iterator[Weakness]:
    headers = entries_of(tree, (*key, "headers"))
    has_credentials = any(looks_secret(one) or _holds_reference(tree, (*key, "headers", one)) for one in headers)
    for field in ("url", "last_number_url"):
        written = find_text(tree, (*key, field))
        try:
            parts = urlsplit(template_of(written or "").masked)
            host = parts.hostname or ""
        except (Unfit, ValueError):
            continue
        in_url = "@" in parts.netloc or _holds_reference(tree, (*key, field))
        if parts.scheme == "http" and not is_of_this_machine(host) and (has_credentials or in_url):
            yield Weakness(name, (*key, field), "would send credentials over the network without TLS", "use https")


def _weak_spark(tree: Node, name: str) -> Iterator[Weakness]:
    """YARN and Kubernetes give each application a secret of its own; a master of Spark's own has one that is shared."""
    master = find_text(tree, _MASTER) or ""
    hosts = [place.rpartition(":")[0] for place in master.removeprefix("spark://").split(",")]
    if master.startswith("spark://") and all(map(is_of_this_machine, hosts)):
        return
    for setting in _SPARK_ASKS:
        key: Key = ("spark", "settings", setting)
        if (find_text(tree, key) or "true").casefold() != "true":
            yield Weakness(name, key, "lets anybody run code in the driver who reaches it", f"leave out {setting}")
            return
    if master.startswith("spark://") and find_text(tree, ("spark", "settings", _SPARK_SECRET)) is None:
        sentence = "lets anybody run code in the driver who reaches it: the cluster has no secret"
        remedy = f"set settings {_SPARK_SECRET}: ${{file:…}}, as for the master and the workers"
        yield Weakness(name, _MASTER, sentence, remedy)


def _holds_reference(tree: Node, key: Key) -> bool:
    try:
        return has_reference(template_of(find_text(tree, key) or "").masked)
    except Unfit:
        return False


def is_of_this_machine(host: str) -> bool:
    """Whether what goes to an address stays on this machine: loopback, or a socket in a folder."""
    bare = host.strip().strip("[]").casefold()
    if not bare or bare.startswith(("/", "@")) or bare == "localhost":
        return True
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return False
