"""A receiver that is reached over HTTP, by the protocol of `docs/receiver-protocol.md`.

1. A connection that cannot be made has carried nothing: `Unreachable`. One that breaks or falls silent later says
   nothing about what was on its way: `Indefinite`. So does 503, which something in between may have said.
2. A kept connection that the other side has closed meanwhile is noticed before a request is written to it, and
   replaced; otherwise every pause of a receiver that remembers nothing would leave a doubt.
3. Any answer that is not of the protocol is no answer. A redirect is none, either: what stands behind it was not asked,
   and what answered may have done its work (303 is what a server says that has).
4. An answer has a last byte and a deadline (`bounded.py`).
"""

from __future__ import annotations

import http.client
import select
import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from zerotail.channel.bounded import BoundedConnection, BoundedTlsConnection
from zerotail.channel.receiver import ClaimAnswer, SendAnswer
from zerotail.core.emission import Lane
from zerotail.core.identity import EmissionNumber, Epoch, SiteName
from zerotail.core.receiver import Welcome
from zerotail.deadline import Deadline
from zerotail.errors import ZerotailError, first_line
from zerotail.ports import (
    Accepted,
    ClaimAtReceiver,
    Indefinite,
    OtherInstallation,
    OutOfOrder,
    Refused,
    SendEmissions,
    Superseded,
    Unreachable,
)

T = TypeVar("T")
Headers = Callable[[], Mapping[str, str]]
"""Looked up for every new connection, because secrets in them may be renewed."""
_HAS_ITS_EFFECT = frozenset({"accepted", "repeat_dropped"})
_OLDER = "older_epoch_refused"
_OTHER = "other_installation_refused"
_EXPOSED = "Zerotail-Exposed"
_INSTALLATION = "Zerotail-Installation"
_NONE: Mapping[str, str] = MappingProxyType({})
_SAYS_NOTHING = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
"""Statuses below 500 after which the request may still have had its effect."""


class _Claimant(msgspec.Struct, frozen=True):
    epoch: Epoch
    incarnation: int


class _BatchAnswer(msgspec.Struct, frozen=True):
    verdicts: list[str]
    last_accepted: EmissionNumber | None
    highest: _Claimant | None = None
    installation: str = ""


class _ClaimTaken(msgspec.Struct, frozen=True):
    last_accepted: EmissionNumber | None
    last_epoch: Epoch | None


class _ClaimRefused(msgspec.Struct, frozen=True):
    highest: _Claimant


class _OfAnother(msgspec.Struct, frozen=True):
    installation: str


class _LastSaid(msgspec.Struct, frozen=True):
    highest: _Claimant | None = None
    installation: str | None = None
    """Whose claim it is, where the receiver tells them apart and it is not the one of whoever asks."""


class HttpReceiver:
    """Posts batches to one URL and claims to another; a receiver that is never claimed needs none for that."""

    def __init__(
        self,
        url: str,
        site: SiteName,
        *,
        claims_url: str = "",
        headers: Headers = dict,
        timeout_seconds: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._site = site
        self._batches = _Wire(url, headers, timeout_seconds, tls)
        self._claims = _Wire(claims_url, headers, timeout_seconds, tls) if claims_url else None

    @classmethod
    def at(cls, url: str, site: SiteName) -> HttpReceiver:
        """A receiver with the paths of the protocol page below `url`, as the laboratory's has them."""
        return cls(f"{url}/batches", site, claims_url=f"{url}/claims")

    def claim(self, effect: ClaimAtReceiver) -> ClaimAnswer:
        """Say who sends from now on, and learn the last number that arrived."""
        if self._claims is None:
            return Welcome(None, None)
        said = self._claims.post(_envelope(effect, self._site), _flags(effect))
        if not isinstance(said, _Said):
            return said
        if said.status == HTTPStatus.OK and (taken := _decode(said, _ClaimTaken)):
            return Welcome(taken.last_accepted, taken.last_epoch)
        if said.status == HTTPStatus.CONFLICT and (other := _decode(said, _OfAnother)):
            return OtherInstallation(other.installation)
        if said.status == HTTPStatus.CONFLICT and (refused := _decode(said, _ClaimRefused)):
            return Superseded(refused.highest.epoch)
        return _declined(said)

    def last_claim(self, lane: Lane, installation: str) -> Epoch | Unreachable | None:
        """In which epoch this installation claimed the lane last, without claiming it; None where it has not.
        `Unreachable` where the receiver does not say.
        """
        if self._claims is None:
            return Unreachable()
        flags = {_INSTALLATION: installation} if installation else {}
        said = self._claims.get({"channel": lane.channel, "partition": str(lane.partition)}, flags)
        met = _decode(said, _LastSaid) if isinstance(said, _Said) and said.status == HTTPStatus.OK else None
        if met is None:
            return Unreachable()
        if met.highest is None or met.installation not in (None, installation):
            return None
        return met.highest.epoch

    def send(self, effect: SendEmissions) -> SendAnswer:
        """Send one batch and wait for the verdicts."""
        said = self._batches.post({**_envelope(effect, self._site), "messages": _messages(effect)}, _flags(effect))
        if not isinstance(said, _Said):
            return said
        if said.status in (HTTPStatus.OK, HTTPStatus.CONFLICT) and (answer := _decode(said, _BatchAnswer)):
            return _conclude(effect, answer)
        return _declined(said)

    def close(self) -> None:
        """End the connections."""
        self._batches.close()
        if self._claims is not None:
            self._claims.close()


def _envelope(effect: ClaimAtReceiver | SendEmissions, site: SiteName) -> dict[str, Any]:
    return {
        "channel": effect.lane.channel,
        "partition": effect.lane.partition,
        "epoch": effect.epoch,
        "incarnation": effect.incarnation,
        "site": site,
    }


def _flags(effect: ClaimAtReceiver | SendEmissions) -> dict[str, str]:
    """What is told beside a request: a receiver may take an unknown field for an error."""
    flags = {_INSTALLATION: effect.installation} if effect.installation else {}
    if isinstance(effect, SendEmissions) and effect.exposed:
        flags[_EXPOSED] = "true"
    return flags


class _Message(msgspec.Struct, frozen=True, gc=False):
    number: int
    possible_duplicate: bool
    body: bytes
    """As JSON it is base64."""


def _messages(effect: SendEmissions) -> list[_Message]:
    doubtful = effect.doubtful_until
    return [_Message(number, number <= doubtful, value) for number, value in enumerate(effect.values, effect.first)]


def _conclude(effect: SendEmissions, answer: _BatchAnswer) -> SendAnswer:
    if _OTHER in answer.verdicts:
        return OtherInstallation(answer.installation)
    if _OLDER in answer.verdicts:
        return Superseded(answer.highest.epoch if answer.highest else effect.epoch)
    if len(answer.verdicts) != len(effect.values):
        return Indefinite(f"it answered {len(answer.verdicts)} verdicts to {len(effect.values)} messages")
    if _HAS_ITS_EFFECT.issuperset(answer.verdicts):
        return Accepted(effect.last)
    if answer.last_accepted is None:
        return Indefinite("it refused messages and did not say where it stands")
    return OutOfOrder(answer.last_accepted)


def _declined(said: _Said) -> Refused | Indefinite:
    """What a status that is not of the protocol means: a fault of the request is certain, anything else is not."""
    status = said.status
    if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _SAYS_NOTHING:
        return Refused(f"it answered {status}")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Indefinite(f"it answered {status}, a redirect, which is not followed")
    return Indefinite(f"it answered {status}, with nothing that the protocol knows")


def _decode(said: _Said, form: type[T]) -> T | None:
    try:
        return msgspec.json.decode(said.body, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


class _Said(NamedTuple):
    status: int
    body: bytes


class _Wire:
    """One connection to one URL, kept alive, with one request at a time."""

    def __init__(self, url: str, headers: Headers, timeout_seconds: float, tls: ssl.SSLContext | None) -> None:
        self._url = urlsplit(url)
        self._look_up_headers = headers
        self._headers: Mapping[str, str] = {}
        self._timeout_seconds = timeout_seconds
        self._tls = tls
        self._connection: BoundedConnection | None = None

    def post(self, content: dict[str, Any], flags: Mapping[str, str] = _NONE) -> _Said | Unreachable | Indefinite:
        """Post one request and read its answer to the end."""
        return self._ask("POST", self._target, msgspec.json.encode(content), flags)

    def get(self, asked: Mapping[str, str], flags: Mapping[str, str]) -> _Said | Unreachable | Indefinite:
        """Ask with these words behind the question mark."""
        query = "&".join(word for word in (self._url.query, urlencode(asked)) if word)
        return self._ask("GET", f"{self._url.path or '/'}?{query}", None, flags)

    def _ask(
        self, method: str, target: str, body: bytes | None, flags: Mapping[str, str]
    ) -> _Said | Unreachable | Indefinite:
        try:
            connection = self._connected()
        except (OSError, ZerotailError) as error:  # also of a file with a secret in it, which is replaced just now
            self.close()
            return Unreachable(f"no connection: {first_line(error)}")
        try:
            headers = {"Content-Type": "application/json", **flags, **self._headers}
            connection.deadline = Deadline.after(self._timeout_seconds)
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            return _Said(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Indefinite(f"no whole answer came: {first_line(error)}")

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _target(self) -> str:
        return (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")

    def _connected(self) -> BoundedConnection:
        if self._connection is not None and not _is_open(self._connection):
            self.close()
        if self._connection is None:
            self._headers = self._look_up_headers()
            self._connection = self._new_connection()
            self._connection.connect()
        return self._connection

    def _new_connection(self) -> BoundedConnection:
        host, port, patience = self._url.hostname or "", self._url.port, self._timeout_seconds
        if self._url.scheme == "https":
            context = self._tls or ssl.create_default_context()
            return BoundedTlsConnection(host, port, timeout=patience, context=context)
        return BoundedConnection(host, port, timeout=patience)


def _is_open(connection: BoundedConnection) -> bool:
    """Whether a kept connection can be used: between two requests, anything to read can only be its end."""
    if connection.sock is None:
        return False
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)
