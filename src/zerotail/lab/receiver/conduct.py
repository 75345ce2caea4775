"""How the receiver misbehaves when a drill asks for it; a fresh process behaves well."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from zerotail.lab.receiver.door import Door
from zerotail.lab.receiver.http import HttpAnswer, Unacceptable
from zerotail.lab.receiver.protocol import Batch, Behaviour, BehaviourChange, Claim, Message
from zerotail.lab.receiver.rudeness import Rudeness, rude_answer


class Conduct:
    """The behaviour at the moment. `senders_door` is the one to shut; None if the judge comes in through it
    too.
    """

    def __init__(self, senders_door: Door | None = None) -> None:
        self.senders_door = senders_door
        self._lose_answers = 0
        self._slow_ms = 0.0
        self._unavailable = False
        self._reopening: asyncio.TimerHandle | None = None
        self._detain = 0
        self._detained: list[asyncio.Event] = []
        self._rudeness: Rudeness = ""
        self._rude_to = 0
        self._rude_answers = 0

    def behaviour(self) -> Behaviour:
        """The behaviour as a value; of a refusal, what is left of it."""
        left = self._reopening.when() - asyncio.get_running_loop().time() if self._reopening else 0.0
        kept_back = (self._detain, len(self._detained))
        return Behaviour(
            self._lose_answers,
            self._slow_ms,
            self._unavailable,
            max(0.0, left),
            *kept_back,
            rudeness=self._rudeness,
            rude_to=self._rude_to,
            rude_answers=self._rude_answers,
        )

    async def change(self, change: BehaviourChange) -> None:
        """Take over the fields that are given."""
        if isinstance(change.refuse_seconds, float):
            await self._refuse(change.refuse_seconds)
        if isinstance(change.lose_answers, int):
            self._lose_answers = change.lose_answers
        if isinstance(change.slow_ms, float):
            self._slow_ms = change.slow_ms
        if isinstance(change.unavailable, bool):
            self._unavailable = change.unavailable
        if isinstance(change.detain, int):
            self._detain_next(change.detain)
        if isinstance(change.rude_to, int):
            self._rude_to = change.rude_to
        if isinstance(change.rudeness, str):
            self._rudeness = change.rudeness

    async def normalise(self) -> None:
        """Behave well again."""
        self._lose_answers, self._slow_ms, self._unavailable, self._rudeness = 0, 0.0, False, ""
        self._detain_next(0)
        await self._reopen()

    def require_available(self) -> None:
        """Raise the answer 503 if the receiver is to look unavailable."""
        if self._unavailable:
            raise Unacceptable(HTTPStatus.SERVICE_UNAVAILABLE, "the receiver was told to be unavailable")

    def find_rude_answer(self, sent: Message | Batch | Claim) -> HttpAnswer | None:
        """What this sender hears instead of a verdict, if the receiver is to be rude to it."""
        if not self._rudeness or sent.partition != self._rude_to:
            return None
        self._rude_answers += 1
        return rude_answer(self._rudeness, sent)

    def loses_answer(self) -> bool:
        """Whether the answer to the delivery that begins now is to be lost; asking uses one up."""
        if self._lose_answers == 0:
            return False
        self._lose_answers -= 1
        return True

    async def keep_back(self) -> None:
        """Hold this delivery, as a slow wire would, until everything detained is set free."""
        if self._detain:
            self._detain -= 1
            free = asyncio.Event()
            self._detained.append(free)
            await free.wait()

    def _detain_next(self, deliveries: int) -> None:
        self._detain = deliveries
        if not deliveries:
            for free in self._detained:
                free.set()
            self._detained.clear()

    async def be_slow(self) -> None:
        """Wait as long as was asked for."""
        if self._slow_ms:
            await asyncio.sleep(self._slow_ms / 1000)

    async def _refuse(self, seconds: float) -> None:
        if self.senders_door is None:
            raise Unacceptable(
                HTTPStatus.CONFLICT, "connections can be refused only if the configuration has a control_port"
            )
        await self._reopen()
        if seconds:
            self.senders_door.shut()
            loop = asyncio.get_running_loop()
            self._reopening = loop.call_later(seconds, lambda: loop.create_task(self._reopen()))

    async def _reopen(self) -> None:
        if self._reopening is not None and self.senders_door is not None:
            self._reopening.cancel()
            self._reopening = None
            await self.senders_door.open()
