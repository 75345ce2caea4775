"""Connection strings, URLs and broker lists: taken apart with references masked, checked, filled in.

A password may stand in any of the first two, and only as a reference. Messages name keys, never values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, urlsplit

from zerotail.config.problem import Unfit, did_you_mean, shown_word
from zerotail.config.secret import Reference, Template, has_reference, is_reference_only, template_of

_LOOKS_SECRET = re.compile(
    r"pass(word|wd|phrase|code)?$|pwd$|secret|token|credential|api[-_.]?key|private[-_.]?key|"
    r"^(proxy-)?authorization$|cookie|ssl\.key\.pem",
    re.IGNORECASE,
)

# The options of libpq 18 but for `replication`, and those of OAuth, which make the client open addresses.
_OPTIONS_OF_LIBPQ = """
    application_name channel_binding client_encoding connect_timeout dbname fallback_application_name
    gssdelegation gssencmode gsslib host hostaddr keepalives keepalives_count keepalives_idle
    keepalives_interval krbsrvname load_balance_hosts max_protocol_version min_protocol_version options
    passfile password port require_auth requirepeer scram_client_key scram_server_key service sslcert
    sslcertmode sslcompression sslcrl sslcrldir sslkey sslkeylogfile ssl_max_protocol_version
    ssl_min_protocol_version sslmode sslnegotiation sslpassword sslrootcert sslsni target_session_attrs
    tcp_user_timeout user
"""
CONNECTION_OPTIONS = frozenset(_OPTIONS_OF_LIBPQ.split())
_SECRET_OPTIONS = frozenset({"password", "sslpassword", "scram_client_key", "scram_server_key"})
_PAIR = re.compile(r"\s*([^\s=]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*)?)(?=\s|$)", re.S)
_HOST = re.compile(r"(?!-)[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")


def looks_secret(name: str) -> bool:
    """Whether a key, a header or a parameter of this name usually holds a secret."""
    return _LOOKS_SECRET.search(name) is not None


def connection_options(template: Template) -> dict[str, str]:
    """The options of a connection string, still masked; `Unfit` when it cannot be one."""
    text = template.masked
    options = _options_of_url(text) if re.match(r"postgres(ql)?://", text) else _options_of_pairs(text)
    for name, value in options.items():
        if name not in CONNECTION_OPTIONS:
            shown = shown_word(name)
            sentence = f"holds the connection option {shown}, which PostgreSQL does not know"
            raise Unfit(sentence, did_you_mean(name, sorted(CONNECTION_OPTIONS)))
        if name in _SECRET_OPTIONS and value and not is_reference_only(value):
            raise Unfit(
                f"holds a {name} in plain text",
                f"write {name}=${{env:NAME}} or {name}=${{file:path}} and keep the value there",
            )
    return options


def _options_of_pairs(text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    at = 0
    end = len(text.rstrip())
    while at < end:
        pair = _PAIR.match(text, at)
        if not pair:
            raise Unfit("must be a connection string such as host=pg-east dbname=core user=zerotail")
        name, quoted, bare = pair.groups()
        if name in options:
            raise Unfit(f"gives the connection option {shown_word(name)} twice")
        options[name] = re.sub(r"\\(.)", r"\1", quoted if quoted is not None else bare or "", flags=re.S)
        at = pair.end()
    if not options:
        raise Unfit("must be a connection string such as host=pg-east dbname=core user=zerotail")
    return options


def _options_of_url(text: str) -> dict[str, str]:
    try:
        parts = urlsplit(text)
    except ValueError:
        raise Unfit("must be a URL such as postgresql://zerotail@pg-east/core") from None
    user, _, hosts = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    found = re.findall(r"(\[[^\]]*\]|[^:,]*)(?::([0-9]*))?(?:,|$)", hosts)
    options = {
        "user": name,
        "password": password,
        "host": ",".join(host for host, _ in found if host),
        "port": ",".join(port for _, port in found if port),
        "dbname": parts.path.removeprefix("/"),
    }
    options = {option: value for option, value in options.items() if value}
    return options | dict(parse_qsl(parts.query))


def fill_connection(template: Template, find: Callable[[Reference], str]) -> str:
    """A connection string with its secrets, each quoted as a whole (or percent-encoded in a URL)."""
    if re.match(r"postgres(ql)?://", template.masked):
        return fill_url(template, find)
    if not template.references:
        return template.masked
    options = connection_options(template)
    return " ".join(f"{name}={_quoted(template.fill(value, find))}" for name, value in options.items())


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def fill_url(template: Template, find: Callable[[Reference], str]) -> str:
    """A URL with its secrets, percent-encoded."""
    return template.fill(template.masked, lambda reference: quote(find(reference), safe=""))


def fill_header(template: Template, find: Callable[[Reference], str]) -> str:
    """A header's value with its secrets; line breaks would begin another header."""

    def one_line(reference: Reference) -> str:
        value = find(reference)
        if not value.isprintable() or not value.isascii():
            raise Unfit("refers to a secret with characters that a header cannot carry")
        return value

    return template.fill(template.masked, one_line)


def require_web_address(template: Template) -> None:
    """`Unfit` unless the text is an http or https URL with a host and without a secret in plain text."""
    example = "must be a URL such as https://bank.example/transfers"
    try:
        parts = urlsplit(template.masked)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise Unfit(example) from None
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s\x00-\x1f\\]", template.masked):
        raise Unfit(example)
    user, _, _ = parts.netloc.rpartition("@")
    _, _, password = user.partition(":")
    named = [value for name, value in parse_qsl(parts.query) if looks_secret(name)]
    if any(value and not has_reference(value) for value in [password, *named]):
        raise Unfit("holds a secret in plain text", "write ${env:NAME} or ${file:path} in its place")


def brokers_of(text: str) -> tuple[str, ...]:
    """The `host:port` pairs of a list of brokers; `Unfit` when one of them is none."""
    brokers = tuple(broker.strip() for broker in text.split(","))
    for broker in brokers:
        host, _, port = broker.rpartition(":")
        if not (_HOST.fullmatch(host) and re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) < 65_536):
            raise Unfit("must be a list of brokers such as kafka-1:9092,kafka-2:9092")
    if len(set(brokers)) < len(brokers):
        raise Unfit("names the same broker twice")
    return brokers


def database_place(written: str) -> tuple[str, ...] | None:
    """What tells two databases apart in their connection strings; None when that cannot be said."""
    try:
        template = template_of(written)
        options = {name: template.fill(value, str) for name, value in connection_options(template).items()}
    except Unfit:
        return None
    host = options.get("hostaddr") or options.get("host", "")
    return (host.casefold(), options.get("port", "5432"), options.get("service", ""))
