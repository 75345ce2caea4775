"""The plain pipeline as a process.

python -m zerotail.bench.plain --config LAB/east/plain-zerotail.yaml --site east
"""

from __future__ import annotations

import argparse
import signal
from threading import Event

from zerotail.code import find_code_beside
from zerotail.config import load
from zerotail.core.identity import SiteName
from zerotail.running.parts import plan_parts


def main() -> None:
    """Run until a signal."""
    parser = argparse.ArgumentParser(prog="python -m zerotail.bench.plain", description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--site", required=True)
    options = parser.parse_args()
    configuration = load(options.config)
    find_code_beside(options.config)
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    from zerotail.spark.plain_flow import run

    run(configuration, SiteName(options.site), plan_parts(configuration), stop)


if __name__ == "__main__":
    main()
