"""`python -m zerotail.lab.receiver --config FILE`: the process of the receiver."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable

from zerotail.lab.program import run_program
from zerotail.lab.receiver.conduct import Conduct
from zerotail.lab.receiver.desk import Desk
from zerotail.lab.receiver.door import Door
from zerotail.lab.receiver.routes import dispatch, judge_routes, sender_routes
from zerotail.lab.receiver.settings import ReceiverSettings, read_settings


def main() -> int:
    """Run until SIGTERM or SIGINT; one line on stdout says that it is ready."""
    return run_program("zerotail.lab.receiver", __doc__, read_settings, _serve)


async def _serve(settings: ReceiverSettings) -> None:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def fail(error: BaseException) -> None:
        if not ended.done():
            ended.set_exception(error)

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    desk = Desk(settings)
    doors = _hang_doors(settings, desk, fail)
    for door in doors:
        await door.open()
    sys.stdout.write(f"receiver ready: port {settings.port}, {desk.settled_sequence} attempts known\n")
    sys.stdout.flush()
    try:
        await ended
    finally:
        for door in doors:
            door.shut()
        desk.close()


def _hang_doors(settings: ReceiverSettings, desk: Desk, fail: Callable[[BaseException], None]) -> list[Door]:
    """One door for senders and one for the judge, or one for both."""
    conduct = Conduct()
    senders, judges = sender_routes(desk, conduct), judge_routes(desk, conduct)
    if settings.control_port is None:
        return [Door(settings.port, dispatch(senders | judges), settings.max_body_bytes, fail)]
    conduct.senders_door = Door(settings.port, dispatch(senders), settings.max_body_bytes, fail)
    judges_door = Door(settings.control_port, dispatch(judges), settings.max_body_bytes, fail)
    return [conduct.senders_door, judges_door]


if __name__ == "__main__":
    sys.exit(main())
