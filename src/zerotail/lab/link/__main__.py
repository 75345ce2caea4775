"""`python -m zerotail.lab.link --config FILE`: the process of the link."""

from __future__ import annotations

import argparse
import asyncio
import resource
import signal
import sys
from pathlib import Path

from zerotail.errors import ZerotailError
from zerotail.lab.link.control import open_control
from zerotail.lab.link.link import Link
from zerotail.lab.link.settings import LinkSettings, read_settings


def main() -> int:
    """Run until SIGTERM or SIGINT; one line on stdout says that everything listens."""
    parser = argparse.ArgumentParser(prog="python -m zerotail.lab.link", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration, JSON")
    path = parser.parse_args().config
    try:
        asyncio.run(_serve(read_settings(path)))
    except ZerotailError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return error.exit_code
    return 0


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
