"""A receiver that is reached over HTTP, by the protocol of `docs/receiver-protocol.md`: the sender's side."""

from __future__ import annotations

import base64
import http.client
from typing import Any
from urllib.parse import urlsplit

import msgspec

from zerotail.core.identity import EmissionNumber, Epoch, SiteName
from zerotail.core.receiver import Welcome
from zerotail.ports import (
    Accepted,
    ClaimAtReceiver,
    Conflicting,
    Indefinite,
    OutOfOrder,
    SendEmissions,
    Superseded,
    Unreachable,
)

_TIMEOUT_SECONDS = 10.0
_HAS_ITS_EFFECT = ("accepted", "repeat_dropped")


class HttpReceiver:
    """One connection, kept alive; one request at a time."""

    def __init__(self, url: str, site: SiteName) -> None:
        self._url = urlsplit(url)
        self._site = site
        self._connection: http.client.HTTPConnection | None = None

    def claim(self, effect: ClaimAtReceiver) -> Welcome | Superseded | Unreachable:
        """Tell the receiver who sends from now on."""
        before = self._ask("GET", f"/last?channel={effect.lane.channel}&partition={effect.lane.partition}", None)
        answer = self._ask(
            "POST",
            "/claims",
            {
                "channel": effect.lane.channel,
                "epoch": effect.epoch,
                "incarnation": effect.incarnation,
                "site": self._site,
            },
        )
        if before is None or answer is None:
            return Unreachable()
        status, said = answer
        if status == http.HTTPStatus.CONFLICT:
            return Superseded(Epoch(said["highest"]["epoch"]))
        if status != http.HTTPStatus.OK:
            return Unreachable()
        last = said["last_accepted"]
        highest = before[1].get("highest")
        return Welcome(
            None if last is None else EmissionNumber(last.get(str(effect.lane.partition), 0)),
            None if highest is None else Epoch(highest["epoch"]),
        )

    def send(
        self, effect: SendEmissions
    ) -> Accepted | Superseded | OutOfOrder | Conflicting | Indefinite | Unreachable:
        """Send one batch and wait for the verdicts."""
        answer = self._ask(
            "POST",
            "/batches",
            {
                "channel": effect.lane.channel,
                "partition": effect.lane.partition,
                "epoch": effect.epoch,
                "incarnation": effect.incarnation,
                "site": self._site,
                "messages": [
                    {
                        "number": number,
                        "possible_duplicate": number <= effect.doubtful_until,
                        "body": base64.b64encode(value).decode(),
                    }
                    for number, value in enumerate(effect.values, effect.first)
                ],
            },
        )
        if answer is None:
            return Indefinite()
        status, said = answer
        if status == http.HTTPStatus.SERVICE_UNAVAILABLE:
            return Unreachable()
        if status not in (http.HTTPStatus.OK, http.HTTPStatus.CONFLICT):
            return Indefinite()
        verdicts = said["verdicts"]
        if "older_epoch_refused" in verdicts:
            return Superseded(Epoch(said["highest"]["epoch"]))
        if not all(verdict in _HAS_ITS_EFFECT for verdict in verdicts):
            return OutOfOrder(EmissionNumber(said["last_accepted"]))
        return Accepted(EmissionNumber(effect.first + len(effect.values) - 1))

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method: str, path: str, content: dict[str, Any] | None) -> tuple[int, dict[str, Any]] | None:
        """Status and answer; None when there was none, and then nobody knows what became of the request."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                self._url.hostname or "", self._url.port, timeout=_TIMEOUT_SECONDS
            )
        try:
            self._connection.request(
                method, self._url.path.rstrip("/") + path, msgspec.json.encode(content) if content else None
            )
            response = self._connection.getresponse()
            return response.status, msgspec.json.decode(response.read())
        except (OSError, http.client.HTTPException, msgspec.DecodeError):
            self.close()
            return None
