"""The settings that are compared, and what each of them promises.

A **cell** is one combination: what the producer waits for, and how its topic is set. Each has a topic of its own on the
same cluster, so that one fault strikes all of them in the same moment. Twelve cells are the full product of acks,
`min.insync.replicas` and unclean election, with a producer that repeats what it got no answer for; two more are the
settings that the audit asks for: with idempotence, and, as it asks where copies share a rack, with a flush of every
record on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of settings."""

    acks: str
    min_insync: int
    unclean: bool
    idempotent: bool = False
    flushed: bool = False
    """Every record is flushed to the disk before it is acknowledged."""

    @property
    def name(self) -> str:
        """For topics and keys."""
        words = [f"acks-{self.acks}", f"min-{self.min_insync}", "unclean" if self.unclean else "clean"]
        return "-".join([*words, *(["idempotent"] if self.idempotent else []), *(["flushed"] if self.flushed else [])])

    @property
    def promises_leaders(self) -> bool:
        """Whether nothing acknowledged may be lost with the leader."""
        return self.acks == "all" and self.min_insync >= 2

    @property
    def promises_processes(self) -> bool:
        """Whether nothing acknowledged may be lost as long as the disks keep what was written to them."""
        return self.promises_leaders and not self.unclean

    def for_topic(self) -> Mapping[str, str]:
        """The topic's settings."""
        flush = {"flush.messages": "1"} if self.flushed else {}
        return {
            "min.insync.replicas": str(self.min_insync),
            "unclean.leader.election.enable": str(self.unclean).lower(),
            **flush,
        }

    def for_producer(self) -> Mapping[str, Any]:
        """The producer's settings."""
        # As many on their way as the Java client has; librdkafka's million makes small requests stand in line.
        return {"acks": self.acks, "enable.idempotence": self.idempotent, "max.in.flight": 5}


PRODUCT = tuple(
    Cell(acks, least, unclean) for acks, least, unclean in product(("0", "1", "all"), (1, 2), (True, False))
)
CELLS = (
    *PRODUCT,
    Cell("all", 2, unclean=False, idempotent=True),
    Cell("all", 2, unclean=False, idempotent=True, flushed=True),
)
