"""Submit an instruction from Python, and know when it is accepted: when its row is behind the gate.

    from zerotail import Submitter

    with Submitter("zerotail.yaml", "east") as business:
        serial = business.submit("cards", "c-4711", {"account": "a17", "amount": -1250}, partition=0)

The identifier is the client's own. Whoever gets no answer submits again under the same identifier, at whichever site is
active then: the row is found, and not stored twice.

The answer is the serial, and says how durable the instruction is: `serial.durability` is `gated` when both sites have
it, and `exposed` while there is no other site. With `takeover.exposed: hold` nothing is accepted meanwhile.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from zerotail.config import load
from zerotail.core.identity import PartitionNumber, ProducerNumber, SiteName
from zerotail.core.intake import AcceptedSerial
from zerotail.errors import Misused, Refused, Unfinished
from zerotail.flow.submit import submit as submit_story
from zerotail.handler import Value, encode_value
from zerotail.ports import Held
from zerotail.ports import Refused as Declined
from zerotail.postgres.registration import find_numbers
from zerotail.postgres.transaction import Session
from zerotail.running.prepare import adapter_settings
from zerotail.wiring import SiteAdapters, run_to_end

_HELD_SECONDS = 0.2
_PATIENCE_SECONDS = 5.0
"""For each answer of the site's database: a client must not wait for one that stands still, but ask the other site."""


class Submitter:
    """A session of one client with one site; not to be shared by threads."""

    def __init__(self, config: str | Path | None, site: str) -> None:
        self._configuration = load(config)
        self._settings = adapter_settings(self._configuration, SiteName(site))
        self._adapters = SiteAdapters(self._settings, patience_seconds=_PATIENCE_SECONDS)
        self._accepts_exposed = self._configuration.takeover.exposed == "release"
        self._numbers: dict[str, ProducerNumber] = {}

    def submit(
        self, producer: str, identifier: str, value: Value, *, partition: int = 0, patience_seconds: float = 10.0
    ) -> AcceptedSerial:
        """The serial of the accepted instruction, with its `durability`.

        `Refused` when it is certainly not there, `Unfinished` when nobody knows: submit it again.
        """
        number = self._number(producer)
        encoded = value if isinstance(value, bytes) else encode_value(value)
        give_up = time.monotonic() + patience_seconds
        while True:
            story = submit_story(
                number, PartitionNumber(partition), identifier, encoded, accept_exposed=self._accepts_exposed
            )
            answer = run_to_end(story, self._adapters)
            if isinstance(answer, Declined):
                raise Refused(
                    f"{identifier} was not taken at {self._settings.site}: {answer.reason}.",
                    code="ZT463",
                    tries=["zerotail status"],
                )
            if isinstance(answer, AcceptedSerial):
                return answer
            if time.monotonic() > give_up:
                if isinstance(answer, Held):
                    raise self._held(identifier)
                raise Unfinished(
                    f"nobody knows whether {identifier} is accepted: it is not behind the gate after "
                    f"{patience_seconds:g} s.",
                    code="ZT464",
                    why="Submit it again under the same identifier; it is never stored twice.",
                )
            if isinstance(answer, Held):
                time.sleep(_HELD_SECONDS)

    def _held(self, identifier: str) -> Unfinished:
        site = self._settings.site
        return Unfinished(
            f"{identifier} is stored at {site} and not accepted: {site} works without the other site, and "
            "takeover.exposed is hold.",
            code="ZT468",
            why="It is accepted when both sites have it. Submit it again then, under the same identifier; it is never "
            "stored twice.",
            tries=["zerotail status", f"zerotail rejoin plan --site {self._configuration.other_site(site)}"],
        )

    def close(self) -> None:
        """Give the connections back."""
        self._adapters.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _number(self, producer: str) -> ProducerNumber:
        if producer not in self._numbers:
            session = Session(self._settings.dsn, "zerotail submit", patience_seconds=_PATIENCE_SECONDS)
            try:
                found = session.read(lambda connection: find_numbers(connection, [producer]))
            finally:
                session.close()
            if not isinstance(found, dict):
                raise session.silence(self._settings.site, found, tries=["zerotail status"])
            if producer not in found:
                raise Misused(
                    f"the database of {self._settings.site} knows no producer {producer!r}.",
                    code="ZT465",
                    tries=[f"zerotail run all --site {self._settings.site}"],
                )
            self._numbers |= found
        return self._numbers[producer]


def submit(
    config: str | Path | None, site: str, producer: str, identifier: str, value: Value, *, partition: int = 0
) -> AcceptedSerial:
    """Submit one instruction; for more than one, keep a `Submitter`."""
    with Submitter(config, site) as business:
        return business.submit(producer, identifier, value, partition=partition)
