"""Rows of a database that is not ours.

R0: the effect and the number are one transaction, so the database outside knows exactly what it has. A receipt per
lane holds the last number and the newest sender; a batch is taken from the newest sender only, and only behind the last
number.
R1: a unique key drops what is repeated.

The tables are the receiver's own; `postgres/receipt.sql` is the file that its DBA runs.
"""

from __future__ import annotations

from zerotail.channel.receiver import ClaimAnswer, SendAnswer
from zerotail.core.receiver import Welcome
from zerotail.ports import ClaimAtReceiver, SendEmissions
from zerotail.postgres import receipt
from zerotail.postgres.connection import Connection
from zerotail.postgres.receipt import Effect
from zerotail.postgres.transaction import Session


class PostgresReceiver:
    """A database outside; `receipts` makes it R0."""

    def __init__(
        self,
        dsn: str,
        effect: Effect,
        *,
        receipts: bool,
        timeout_seconds: float = 10.0,
        named: tuple[str, Effect] | None = None,
    ) -> None:
        """`named` is a table, and what stores a message there if the table can say of which installation a row is."""
        self._named = named
        self._session = Session(dsn, "zerotail emitter", commits_locally=False, patience_seconds=timeout_seconds)
        self._effect = effect
        self._receipts = receipts

    def claim(self, effect: ClaimAtReceiver) -> ClaimAnswer:
        """Enter the sender in the lane's receipt, and read the last number."""
        if not self._receipts:
            return Welcome(None, None)
        return receipt.write(self._session, lambda connection: receipt.claim(connection, effect))

    def send(self, effect: SendEmissions) -> SendAnswer:
        """Carry the messages out, in one transaction."""
        take = receipt.take_in_order if self._receipts else receipt.take
        return receipt.write(
            self._session, lambda connection: take(connection, effect, self._stored(connection, effect))
        )

    def _stored(self, connection: Connection, effect: SendEmissions) -> Effect:
        """How a message is carried out, by what the table has."""
        if self._named is not None and effect.installation and receipt.has_installation(connection, self._named[0]):
            return self._named[1]
        return self._effect

    def close(self) -> None:
        """End the session."""
        self._session.close()
