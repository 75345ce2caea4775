"""`python -m zerotail.lab.link --config FILE`: the process of the link."""

from __future__ import annotations

import asyncio
import resource
import signal
import sys

from zerotail.lab.link.control import open_control
from zerotail.lab.link.link import Link
from zerotail.lab.link.settings import LinkSettings, read_settings
from zerotail.lab.program import run_program


def main() -> int:
    """Run until SIGTERM or SIGINT; one line on stdout says that everything listens."""
    return run_program("zerotail.lab.link", __doc__, read_settings, _serve)


async def _serve(settings: LinkSettings) -> None:
    _allow_many_connections()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    link = Link(settings)
    try:
        await open_control(link, settings.control_port)
        sys.stdout.write(f"link ready: control port {settings.control_port}, {len(settings.forwards)} forwards\n")
        sys.stdout.flush()
        await ended.wait()
    finally:
        link.close()


def _allow_many_connections() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    sys.exit(main())
