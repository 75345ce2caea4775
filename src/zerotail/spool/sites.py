"""The two sites as a spool sees them: one of them is active and takes instructions, and which one may change.

Entries are *taken* when their rows are behind the gate of the site that stored them. Whatever else happens, a lost
connection, a site that is not active any more, a gate that stays closed, means: not yet, and why. Trying again, at
either site, is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from zerotail.config import Configuration
from zerotail.flow.gate import pass_gate
from zerotail.ports import Indefinite, Refused, Unreachable
from zerotail.postgres.spooled import SpooledRow, Stored, store_rows
from zerotail.postgres.transaction import Session
from zerotail.running.prepare import adapter_settings
from zerotail.spool.frame import Entry
from zerotail.wiring import AdapterSettings, SiteAdapters, run_to_end

_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Taken:
    """Every entry is an instruction behind the gate, but for those that are `refused`."""

    new: int
    refused: tuple[Entry, ...]
    """Their identifier belongs to other bytes, or no stage has their partition."""
    exposed: bool = False
    """There is no other site now, and so no gate: they are stored once, and their copies here are the only ones."""


@dataclass(frozen=True, slots=True)
class NotYet:
    """Nobody was told anything; try again."""

    reason: str


class Kept(NotYet):
    """A site that works alone has all of them; they stay here until both sites do."""


class Site:
    """The database of one site, and its gate at the other."""

    def __init__(self, settings: AdapterSettings) -> None:
        self._name = settings.site
        self._session = Session(settings.dsn, "zerotail spool", patience_seconds=_PATIENCE_SECONDS)
        self._adapters = SiteAdapters(settings)

    def take(self, producer: str, entries: Sequence[Entry]) -> Taken | NotYet:
        """Store entries as instructions and wait at the gate."""
        rows = [SpooledRow(entry.id, entry.partition, entry.value) for entry in entries]
        stored = self._session.write(lambda connection: store_rows(connection, self._name, producer, rows))
        match stored:
            case Stored():
                release = run_to_end(pass_gate(stored.standing, stored.position), self._adapters)
                if release is None:
                    return NotYet(f"the other site has not confirmed what {self._name} stored")
                refused = tuple(entries[place] for place in stored.refused)
                return Taken(stored.new, refused, exposed=release.answer is None)
            case Refused():
                return NotYet(f"{self._name}: {stored.reason}")
            case Unreachable() | Indefinite():
                return NotYet(f"the database of {self._name} does not answer")

    def close(self) -> None:
        """Give the connections back."""
        self._session.close()
        self._adapters.close()


class Takes(Protocol):
    """Whoever turns entries into instructions."""

    def take(self, producer: str, entries: Sequence[Entry]) -> Taken | NotYet:
        """All of them, behind the gate; or not yet."""

    def close(self) -> None:
        """Give the connections back."""


class Sites:
    """Both sites, the one that took entries last first."""

    def __init__(self, sites: Sequence[Takes]) -> None:
        self._sites = list(sites)

    @classmethod
    def of(cls, configuration: Configuration) -> Sites:
        """The sites of a configuration, the preferred one first."""
        first = configuration.preferred_site
        names = (first, configuration.other_site(first))
        return cls([Site(adapter_settings(configuration, name)) for name in names])

    def take(self, producer: str, entries: Sequence[Entry]) -> Taken | NotYet:
        """Have entries taken by whichever site is active."""
        reasons = []
        for site in list(self._sites):
            answer = site.take(producer, entries)
            if isinstance(answer, Taken):
                self._sites.remove(site)
                self._sites.insert(0, site)
                return answer
            reasons.append(answer.reason)
        return NotYet("; ".join(reasons))

    def close(self) -> None:
        """Give the connections back."""
        for site in self._sites:
            site.close()
