"""A primary and its synchronous standby, simulated, as the truths about PostgreSQL need them.

The body of `test_truths.py` speaks only to `Pair`. `tests/integration/postgres/test_truths.py` pins a real pair to the
same facts, in a body of its own.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from zerotail.core.epoch import Cut, Durability, EpochRow, Lineage, Phase
from zerotail.core.gate import Asker, Gate, decide
from zerotail.core.identity import Epoch, Lsn, SiteName, Timeline
from zerotail.simulation.postgres import SET, Server, Waiting


class Outcome(Enum):
    """What a client that committed sees."""

    WAITS = "waits"
    SUCCESS = "success"
    CONNECTION_LOST = "connection lost"


class Pair(Protocol):
    """What the truths are told with; rows are named, and a name is inserted once."""

    def freeze_standby(self) -> None: ...
    def thaw_standby(self) -> None: ...
    def begin_commit(self, row: str) -> None: ...
    def commit_locally(self, row: str) -> None: ...
    def outcome(self, row: str) -> Outcome: ...
    def cancel(self, row: str) -> None: ...
    def terminate(self, row: str) -> None: ...
    def kill_client(self, row: str) -> None: ...
    def empty_standby_names(self) -> None: ...
    def crash_and_restart_primary(self) -> None: ...
    def promote_standby(self) -> None: ...
    def visible_on_primary(self, row: str) -> bool: ...
    def visible_on_standby(self, row: str) -> bool: ...
    def gate_open(self, row: str) -> bool:
        """Whether the gate vouches for everything up to a position that covers the row."""
        ...


class SimulatedPair:
    """The simulated one."""

    def __init__(self) -> None:
        self._primary = Server(SiteName("east"), 7)
        row = EpochRow(Epoch(256), SiteName("east"), Timeline(1), Durability.GATED, Phase.LIVE, Cut())
        self._primary.write([(SET, "lineage", "", Lineage((row,)))], wait=False)
        self._primary.names = True
        self._standby = Server(SiteName("west"), 7)
        self._standby.copy_from(self._primary)
        self._frozen = False
        self._waiting: dict[str, Waiting | None] = {}
        self._position: dict[str, Lsn] = {}

    def freeze_standby(self) -> None:
        self._frozen = True

    def thaw_standby(self) -> None:
        self._frozen = False
        self._ship()

    def begin_commit(self, row: str) -> None:
        self._waiting[row] = self._primary.write([(SET, "rows", row, True)], wait=True)
        self._position[row] = self._primary.position
        self._ship()

    def commit_locally(self, row: str) -> None:
        self._waiting[row] = self._primary.write([(SET, "rows", row, True)], wait=False)
        self._position[row] = self._primary.position
        self._ship()

    def outcome(self, row: str) -> Outcome:
        waiting = self._waiting[row]
        if waiting is None:
            return Outcome.SUCCESS
        if not waiting.finished:
            return Outcome.WAITS
        return Outcome.SUCCESS if waiting.succeeded else Outcome.CONNECTION_LOST

    def cancel(self, row: str) -> None:
        self._primary.cancel(self._session(row))

    def terminate(self, row: str) -> None:
        self._primary.terminate(self._session(row))

    def kill_client(self, row: str) -> None:
        self._session(row).connected = False

    def empty_standby_names(self) -> None:
        self._primary.empty_names()

    def crash_and_restart_primary(self) -> None:
        self._primary.crash()
        self._primary.start()

    def promote_standby(self) -> None:
        self._standby.promote()

    def visible_on_primary(self, row: str) -> bool:
        return row in self._primary.table("rows")

    def visible_on_standby(self, row: str) -> bool:
        return row in self._standby.table("rows")

    def gate_open(self, row: str) -> bool:
        asker = Asker(7, Timeline(1), Epoch(256))
        return decide(self._standby.gate_answer(), asker, self._position[row]) is Gate.OPEN

    def _session(self, row: str) -> Waiting:
        waiting = self._waiting[row]
        assert waiting is not None
        return waiting

    def _ship(self) -> None:
        if not self._frozen and self._standby.follows(self._primary):
            self._standby.receive(self._primary, len(self._primary.log))
            self._standby.replay(len(self._standby.log))
            self._primary.confirm(len(self._standby.log))
