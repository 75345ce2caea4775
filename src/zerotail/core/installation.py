"""Which installation a database, a record or a message belongs to.

Numbers are dense and begin at 1 in every installation, so what another one left in a topic or at a receiver bears the
same numbers as what is ours. Each installation has an identity, 16 random bytes that are made with its first epoch; a
record carries the first four of them, its **mark**.

1. A record with another mark is foreign, whatever its producer, epoch and serial.
2. A record without a mark is of a time before there were identities: its own to an installation that has begun then,
   foreign to one that was born with an identity.
"""

from __future__ import annotations

from dataclasses import dataclass

IDENTITY_BYTES = 16
MARK_BYTES = 4
NO_MARK = 0


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation, as its database knows it; one without an identity is of a schema from before."""

    identity: bytes = b""
    accepts_unmarked: bool = True

    @property
    def mark(self) -> int:
        """What its records carry."""
        return int.from_bytes(self.identity[:MARK_BYTES], "little")

    @property
    def name(self) -> str:
        """The identity as it is shown."""
        return self.identity.hex()

    @property
    def outside(self) -> str:
        """What receivers are told; nothing where it has begun before there were identities, for they know its messages
        without.
        """
        return "" if self.accepts_unmarked else self.name

    def owns(self, mark: int) -> bool:
        """Whether a record with this mark is one of its own.

        >>> Installation(b"east and west 01", accepts_unmarked=False).owns(NO_MARK)
        False
        """
        return self.accepts_unmarked if mark == NO_MARK else mark == self.mark


UNMARKED = Installation()
"""Of a database that has no identity yet."""
