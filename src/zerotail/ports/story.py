"""What a story is, and the answers that every effect may get."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from enum import Enum
from typing import Any, TypeAlias, TypeVar

import msgspec

from zerotail.core.epoch import Lineage, live_at
from zerotail.core.gate import Asker
from zerotail.core.identity import (
    Epoch,
    Lsn,
    SiteName,
    Timeline,
)
from zerotail.core.installation import UNMARKED, Installation

T = TypeVar("T")
Story: TypeAlias = Generator["Effect", Any, T]
"""A decision in progress: yields effects, receives their results, returns what came of it."""


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Something that the world is asked to do."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """Something that the world answers."""


# Answers that every effect may get.


class Unreachable(Result, frozen=True):
    """Nobody answered, and nothing happened."""

    reason: str = ""


class Indefinite(Result, frozen=True):
    """It may have happened or not."""

    reason: str = ""


class Refused(Result, frozen=True):
    """The other side said no; nothing happened."""

    reason: str = ""


class Done(Result, frozen=True):
    """It happened; `position` covers what was written."""

    position: Lsn = Lsn(0)


class Standing(Result, frozen=True):
    """Where a database stands: its epochs, its timeline (None while it is a standby), and which database it
    is.
    """

    lineage: Lineage
    timeline: Timeline | None
    system: int
    rejoined: Mapping[SiteName, Epoch] = {}
    """In which epoch a site came back, which is part of its topics' names."""
    life: str = ""
    """The nonce of the life that runs, if it is verified (`core.life`); empty at a standby, too."""
    installation: Installation = UNMARKED

    @property
    def epoch(self) -> Epoch:
        """The epoch in which this database is."""
        return self.lineage.current.epoch

    def live_at(self, site: SiteName) -> bool:
        """Whether the processes of a site whose database this is may work."""
        return live_at(self.lineage, site, self.timeline)

    @property
    def asker(self) -> Asker:
        """As whom rows of this database ask for release."""
        return Asker(self.system, self.timeline or Timeline(0), self.epoch, self.life)

    @property
    def waits_for_life(self) -> bool:
        """Whether this is a primary in its own epoch, started anew, and nobody has verified that."""
        return self.timeline == self.lineage.current.timeline and not self.life


class End(Enum):
    """Why a story ended by itself."""

    NOT_ACTIVE = "this site is not the one that works"
    SUPERSEDED = "a newer epoch or a newer instance is at work"
    OUT_OF_STEP = "the receiver stands elsewhere; a new claim finds out where"


class Pause(Effect, frozen=True):
    """There is nothing to do right now, and why."""

    reason: str
    idle: bool = False
    """Whether nothing holds it up: there is just no work."""
    retries: bool = False
    """Whether somebody is asked again behind it: more and more slowly, until it goes well."""
    nearer: bool = False
    """Whether what is waited for has come nearer since the last pause."""


class Late(Result, frozen=True):
    """The answer to a pause of whoever has waited long enough; who gets none may go on waiting."""
